"""Environments with gymnax's interface, and by name."""

from .adapter import GymnaxEnvironment
from .card_game import CardGame
from .registry import episode_steps, make, names
from .repeat_first import RepeatFirst
from .repeat_previous import RepeatPrevious

__all__ = [
    "CardGame",
    "GymnaxEnvironment",
    "RepeatFirst",
    "RepeatPrevious",
    "episode_steps",
    "make",
    "names",
]
