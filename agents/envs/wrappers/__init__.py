"""Wrappers: environments made of other ones."""

from .base import Wrapper, WrapperState
from .corruption import Flicker, Noise
from .episodes import Log, TimeLimit
from .history import FrameStack, PreviousActionReward
from .normalize import NormalizeObservation, NormalizeReward
from .observation import Flatten, Hide, Mask, OneHot

__all__ = [
    "Flatten",
    "Flicker",
    "FrameStack",
    "Hide",
    "Log",
    "Mask",
    "Noise",
    "NormalizeObservation",
    "NormalizeReward",
    "OneHot",
    "PreviousActionReward",
    "TimeLimit",
    "Wrapper",
    "WrapperState",
]
