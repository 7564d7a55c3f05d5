"""Environments with gymnax's interface, and by name."""

from . import wrappers
from .adapter import GymnaxEnvironment
from .brax_env import BraxEnvironment
from .card_game import CardGame
from .gymnasium_env import GymnasiumEnvironment, from_gymnasium
from .registry import episode_steps, make, names
from .repeat_first import RepeatFirst
from .repeat_previous import RepeatPrevious
from .spaces import MultiDiscrete

__all__ = [
    "BraxEnvironment",
    "CardGame",
    "GymnasiumEnvironment",
    "GymnaxEnvironment",
    "MultiDiscrete",
    "RepeatFirst",
    "RepeatPrevious",
    "episode_steps",
    "from_gymnasium",
    "make",
    "names",
    "wrappers",
]
