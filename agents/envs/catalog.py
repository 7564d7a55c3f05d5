"""This library's environments: names, classes and what a name fixes."""

from collections.abc import Callable, Mapping
from typing import Any

from gymnax.environments.environment import Environment

from .autoencode import Autoencode
from .concentration import Concentration
from .count_recall import CountRecall
from .higher_lower import HigherLower
from .multiarmed_bandit import MultiarmedBandit
from .repeat_first import RepeatFirst
from .repeat_previous import RepeatPrevious

# Name, class and the constructor's arguments that the name fixes.
Entries = Mapping[str, tuple[Callable[..., Environment], Mapping[str, Any]]]

_CARDS: Entries = {
    "Autoencode": (Autoencode, {}),
    "AutoencodeEasy": (Autoencode, {"decks": 1}),
    "AutoencodeMedium": (Autoencode, {"decks": 2}),
    "AutoencodeHard": (Autoencode, {"decks": 3}),
    "Concentration": (Concentration, {}),
    "ConcentrationEasy": (Concentration, {"decks": 1, "deck_type": "colors"}),
    "ConcentrationMedium": (Concentration, {"decks": 2, "deck_type": "colors"}),
    "ConcentrationHard": (Concentration, {"decks": 1, "deck_type": "ranks"}),
    "CountRecall": (CountRecall, {}),
    "CountRecallEasy": (CountRecall, {"decks": 1, "deck_type": "colors"}),
    "CountRecallMedium": (CountRecall, {"decks": 2, "deck_type": "suits"}),
    "CountRecallHard": (CountRecall, {"decks": 4, "deck_type": "ranks"}),
    "HigherLower": (HigherLower, {}),
    "HigherLowerEasy": (HigherLower, {"decks": 1}),
    "HigherLowerMedium": (HigherLower, {"decks": 2}),
    "HigherLowerHard": (HigherLower, {"decks": 3}),
    "MultiarmedBandit": (MultiarmedBandit, {}),
    "MultiarmedBanditEasy": (MultiarmedBandit, {"arms": 10, "episode_length": 200}),
    "MultiarmedBanditMedium": (MultiarmedBandit, {"arms": 20, "episode_length": 400}),
    "MultiarmedBanditHard": (MultiarmedBandit, {"arms": 30, "episode_length": 600}),
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
