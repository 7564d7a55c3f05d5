"""Environments with gymnax's interface, and by name."""

from .adapter import GymnaxEnvironment
from .card_game import CardGame
from .cartpole import (
    CartPole,
    NoisyPositionOnlyCartPole,
    PositionOnlyCartPole,
    VelocityOnlyCartPole,
)
from .copy_task import CopyTask
from .pendulum import NoisyPositionOnlyPendulum, Pendulum, PositionOnlyPendulum
from .registry import episode_steps, make, names
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
    "CardGame",
    "CartPole",
    "CopyTask",
    "GymnaxEnvironment",
    "MultiDiscrete",
    "NoisyPositionOnlyCartPole",
    "NoisyPositionOnlyPendulum",
    "Pendulum",
    "PositionOnlyCartPole",
    "PositionOnlyPendulum",
    "RepeatFirst",
    "RepeatPrevious",
    "TMaze",
    "ThreeState",
    "TraceConditioning",
    "VelocityOnlyCartPole",
    "episode_steps",
    "make",
    "mean_squared_return_error",
    "names",
    "trace_conditioning_stream",
    "trace_conditioning_targets",
]
