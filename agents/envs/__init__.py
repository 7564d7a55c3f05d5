"""Environments with gymnax's interface, and by name."""

from . import wrappers
from .bridges.adapter import GymnaxEnvironment
from .bridges.brax_env import BraxEnvironment
from .bridges.gymnasium_env import GymnasiumEnvironment, from_gymnasium
from .bridges.package_env import AbstractPort, PackageEnvironment
from .bridges.pictures import save_brax_html
from .core import encoding
from .core.base import BaseEnvironment
from .core.hidden import Hides
from .core.spaces import MultiDiscrete
from .diagnostics.copy_task import CopyTask
from .diagnostics.memory_chain import MemoryChain
from .diagnostics.mortar_mayhem import MortarMayhem
from .diagnostics.mystery_path import MysteryPath
from .diagnostics.t_maze import TMaze
from .diagnostics.three_state import ThreeState
from .diagnostics.three_state_cycle import ThreeStateCycle
from .diagnostics.trace_conditioning import (
    TraceConditioning,
    mean_squared_return_error,
    trace_conditioning_stream,
    trace_conditioning_targets,
)
from .popgym.boards.battleship import Battleship
from .popgym.boards.labyrinth import Labyrinth
from .popgym.boards.labyrinth_escape import LabyrinthEscape
from .popgym.boards.labyrinth_explore import LabyrinthExplore
from .popgym.boards.minesweeper import MineSweeper
from .popgym.cards.autoencode import Autoencode
from .popgym.cards.card_game import CardGame
from .popgym.cards.concentration import Concentration
from .popgym.cards.count_recall import CountRecall
from .popgym.cards.higher_lower import HigherLower
from .popgym.cards.multiarmed_bandit import MultiarmedBandit
from .popgym.cards.repeat_first import RepeatFirst
from .popgym.cards.repeat_previous import RepeatPrevious
from .popgym.control.cartpole import (
    CartPole,
    NoisyPositionOnlyCartPole,
    PositionOnlyCartPole,
    VelocityOnlyCartPole,
)
from .popgym.control.pendulum import NoisyPositionOnlyPendulum, Pendulum, PositionOnlyPendulum
from .registry import (
    describe,
    episode_steps,
    make,
    names,
    needs_previous_action,
    register,
    resolve,
)
from .remembering.action_sequence import ActionSequence
from .remembering.external_memory import ExternalMemory
from .remembering.gravity import Gravity
from .remembering.hallway_cookie import HallwayCookie
from .remembering.hallway_keys import HallwayKeys
from .remembering.minigrid_memory import MiniGridMemory
from .remembering.red_blue_doors import RedBlueDoors
from .rendering import render, save_gif

__all__ = [
    "AbstractPort",
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
    "Hides",
    "HigherLower",
    "Labyrinth",
    "LabyrinthEscape",
    "LabyrinthExplore",
    "MemoryChain",
    "MineSweeper",
    "MiniGridMemory",
    "MortarMayhem",
    "MultiDiscrete",
    "MultiarmedBandit",
    "MysteryPath",
    "NoisyPositionOnlyCartPole",
    "NoisyPositionOnlyPendulum",
    "PackageEnvironment",
    "Pendulum",
    "PositionOnlyCartPole",
    "PositionOnlyPendulum",
    "RedBlueDoors",
    "RepeatFirst",
    "RepeatPrevious",
    "TMaze",
    "ThreeState",
    "ThreeStateCycle",
    "TraceConditioning",
    "VelocityOnlyCartPole",
    "describe",
    "encoding",
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
