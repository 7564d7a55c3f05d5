"""Environments with gymnax's interface, and by name."""

from .adapter import GymnaxEnvironment
from .card_game import CardGame
from .cartpole import (
    CartPole,
    NoisyPositionOnlyCartPole,
    PositionOnlyCartPole,
    VelocityOnlyCartPole,
)
from .pendulum import NoisyPositionOnlyPendulum, Pendulum, PositionOnlyPendulum
from .registry import episode_steps, make, names
from .repeat_first import RepeatFirst
from .repeat_previous import RepeatPrevious
from .spaces import MultiDiscrete

__all__ = [
    "CardGame",
    "CartPole",
    "GymnaxEnvironment",
    "MultiDiscrete",
    "NoisyPositionOnlyCartPole",
    "NoisyPositionOnlyPendulum",
    "Pendulum",
    "PositionOnlyCartPole",
    "PositionOnlyPendulum",
    "RepeatFirst",
    "RepeatPrevious",
    "VelocityOnlyCartPole",
    "episode_steps",
    "make",
    "names",
]
