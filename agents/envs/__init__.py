"""Environments with gymnax's interface, and by name."""

from . import wrappers
from .action_sequence import ActionSequence
from .adapter import GymnaxEnvironment
from .autoencode import Autoencode
from .base import BaseEnvironment
from .battleship import Battleship
from .brax_env import BraxEnvironment
from .card_game import CardGame
from .cartpole import (
    CartPole,
    NoisyPositionOnlyCartPole,
    PositionOnlyCartPole,
    VelocityOnlyCartPole,
)
from .concentration import Concentration
from .copy_task import CopyTask
from .count_recall import CountRecall
from .external_memory import ExternalMemory
from .gravity import Gravity
from .gymnasium_env import GymnasiumEnvironment, from_gymnasium
from .hallway_cookie import HallwayCookie
from .hallway_keys import HallwayKeys
from .higher_lower import HigherLower
from .labyrinth import Labyrinth
from .labyrinth_escape import LabyrinthEscape
from .labyrinth_explore import LabyrinthExplore
from .minesweeper import MineSweeper
from .minigrid_memory import MiniGridMemory
from .multiarmed_bandit import MultiarmedBandit
from .pendulum import NoisyPositionOnlyPendulum, Pendulum, PositionOnlyPendulum
from .red_blue_doors import RedBlueDoors
from .registry import (
    describe,
    episode_steps,
    make,
    names,
    needs_previous_action,
    register,
    resolve,
)
from .rendering import render, save_brax_html, save_gif
from .repeat_first import RepeatFirst
from .repeat_previous import RepeatPrevious
from .spaces import MultiDiscrete
from .t_maze import TMaze
from .three_state import ThreeState
from .trace_conditioning import (
    TraceConditioning,
    mean_squared_return_error,
    trace_conditioning_stream,
    trace_conditioning_targets,
)

__all__ = [
    "ActionSequence",
    "Autoencode",
    "BaseEnvironment",
    "Battleship",
    "BraxEnvironment",
    "CardGame",
    "CartPole",
    "Concentration",
    "CopyTask",
    "CountRecall",
    "ExternalMemory",
    "Gravity",
    "GymnasiumEnvironment",
    "GymnaxEnvironment",
    "HallwayCookie",
    "HallwayKeys",
    "HigherLower",
    "Labyrinth",
    "LabyrinthEscape",
    "LabyrinthExplore",
    "MineSweeper",
    "MiniGridMemory",
    "MultiDiscrete",
    "MultiarmedBandit",
    "NoisyPositionOnlyCartPole",
    "NoisyPositionOnlyPendulum",
    "Pendulum",
    "PositionOnlyCartPole",
    "PositionOnlyPendulum",
    "RedBlueDoors",
    "RepeatFirst",
    "RepeatPrevious",
    "TMaze",
    "ThreeState",
    "TraceConditioning",
    "VelocityOnlyCartPole",
    "describe",
    "episode_steps",
    "from_gymnasium",
    "make",
    "mean_squared_return_error",
    "names",
    "needs_previous_action",
    "register",
    "render",
    "resolve",
    "save_brax_html",
    "save_gif",
    "trace_conditioning_stream",
    "trace_conditioning_targets",
    "wrappers",
]
