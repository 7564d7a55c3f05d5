"""This library's environments: names, classes and what a name fixes."""

from collections.abc import Callable, Mapping
from typing import Any

from gymnax.environments.environment import Environment

from .action_sequence import RECALL, RECALL_FOUR, RECALL_VARIATION, ActionSequence
from .gravity import Gravity
from .hallway_cookie import HallwayCookie
from .hallway_keys import HallwayKeys
from .minigrid_memory import MiniGridMemory
from .red_blue_doors import RedBlueDoors
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

_REMEMBERING: Entries = {
    "Recall": (ActionSequence, {"rewards": RECALL, "title": "Recall"}),
    "RecallVariation": (ActionSequence, {"rewards": RECALL_VARIATION, "title": "RecallVariation"}),
    "RecallFour": (ActionSequence, {"rewards": RECALL_FOUR, "title": "RecallFour"}),
    "Gravity": (Gravity, {}),
    "HallwayCookie": (HallwayCookie, {}),
    "HallwayKeys": (HallwayKeys, {}),
    "MemoryS7": (MiniGridMemory, {"size": 7}),
    "RedBlueDoors8x8": (RedBlueDoors, {"size": 8}),
}

_BRAX: Entries = {}

OWN: Entries = {
    **_CARDS,
    **_BOARDS,
    **_CONTROL,
    **_PREDICTION,
    **_REMEMBERING,
    **_BRAX,
}
"""Every environment of this library by name."""
