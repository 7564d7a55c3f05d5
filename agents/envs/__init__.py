"""Environments with gymnax's interface, and by name."""

from .adapter import GymnaxEnvironment
from .autoencode import Autoencode
from .card_game import CardGame
from .concentration import Concentration
from .count_recall import CountRecall
from .higher_lower import HigherLower
from .multiarmed_bandit import MultiarmedBandit
from .registry import episode_steps, make, names, needs_previous_action
from .repeat_first import RepeatFirst
from .repeat_previous import RepeatPrevious
from .spaces import MultiDiscrete

__all__ = [
    "Autoencode",
    "CardGame",
    "Concentration",
    "CountRecall",
    "GymnaxEnvironment",
    "HigherLower",
    "MultiDiscrete",
    "MultiarmedBandit",
    "RepeatFirst",
    "RepeatPrevious",
    "episode_steps",
    "make",
    "names",
    "needs_previous_action",
]
