"""Environments with gymnax's interface, and by name."""

from .action_sequence import ActionSequence
from .adapter import GymnaxEnvironment
from .card_game import CardGame
from .external_memory import ExternalMemory
from .gravity import Gravity
from .hallway_cookie import HallwayCookie
from .hallway_keys import HallwayKeys
from .minigrid_memory import MiniGridMemory
from .red_blue_doors import RedBlueDoors
from .registry import episode_steps, make, names
from .repeat_first import RepeatFirst
from .repeat_previous import RepeatPrevious
from .spaces import MultiDiscrete

__all__ = [
    "ActionSequence",
    "CardGame",
    "ExternalMemory",
    "Gravity",
    "GymnaxEnvironment",
    "HallwayCookie",
    "HallwayKeys",
    "MiniGridMemory",
    "MultiDiscrete",
    "RedBlueDoors",
    "RepeatFirst",
    "RepeatPrevious",
    "episode_steps",
    "make",
    "names",
]
