"""This library's environments: names, classes and what a name fixes."""

from collections.abc import Callable, Mapping
from typing import Any

from gymnax.environments.environment import Environment

from .brax_env import LAYOUTS, SUFFIXES, BraxEnvironment
from .repeat_first import RepeatFirst
from .repeat_previous import RepeatPrevious

# Name, class and the constructor's arguments that the name fixes.
Entries = Mapping[str, tuple[Callable[..., Environment], Mapping[str, Any]]]

_CARDS: Entries = {
    "RepeatFirst": (RepeatFirst, {}),
    "RepeatFirstEasy": (RepeatFirst, {"decks": 1}),
    "RepeatFirstMedium": (RepeatFirst, {"decks": 8}),
    "RepeatFirstHard": (RepeatFirst, {"decks": 16}),
    "RepeatPrevious": (RepeatPrevious, {}),
    "RepeatPreviousEasy": (RepeatPrevious, {"decks": 1, "k": 4}),
    "RepeatPreviousMedium": (RepeatPrevious, {"decks": 2, "k": 32}),
    "RepeatPreviousHard": (RepeatPrevious, {"decks": 3, "k": 64}),
}

_BOARDS: Entries = {}

_CONTROL: Entries = {}

_PREDICTION: Entries = {}

_REMEMBERING: Entries = {}

_BRAX: Entries = {
    **{
        f"brax/{env_name}{SUFFIXES[observe]}": (
            BraxEnvironment,
            {"env_name": env_name, "observe": observe},
        )
        for env_name in LAYOUTS
        for observe in ("all", "positions", "velocities")
    },
    "brax/reacher-pomdp": (BraxEnvironment, {"env_name": "reacher", "observe": "target_once"}),
}

OWN: Entries = {
    **_CARDS,
    **_BOARDS,
    **_CONTROL,
    **_PREDICTION,
    **_REMEMBERING,
    **_BRAX,
}
"""Every environment of this library by name."""
