"""Environments with gymnax's interface, and by name."""

from .adapter import GymnaxEnvironment
from .card_game import CardGame
from .registry import episode_steps, make, names
from .repeat_first import RepeatFirst
from .repeat_previous import RepeatPrevious
from .spaces import MultiDiscrete

__all__ = [
    "CardGame",
    "GymnaxEnvironment",
    "MultiDiscrete",
    "RepeatFirst",
    "RepeatPrevious",
    "episode_steps",
    "make",
    "names",
]
