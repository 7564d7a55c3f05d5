"""The card games and the bandit by name."""

from ...core.entries import Entries, levels
from .autoencode import Autoencode
from .concentration import Concentration
from .count_recall import CountRecall
from .higher_lower import HigherLower
from .multiarmed_bandit import MultiarmedBandit
from .repeat_first import RepeatFirst
from .repeat_previous import RepeatPrevious

ENTRIES: Entries = {
    **levels("Autoencode", Autoencode, Easy={"decks": 1}, Medium={"decks": 2}, Hard={"decks": 3}),
    **levels(
        "Concentration",
        Concentration,
        Easy={"decks": 1, "deck_type": "colors"},
        Medium={"decks": 2, "deck_type": "colors"},
        Hard={"decks": 1, "deck_type": "ranks"},
    ),
    **levels(
        "CountRecall",
        CountRecall,
        Easy={"decks": 1, "deck_type": "colors"},
        Medium={"decks": 2, "deck_type": "suits"},
        Hard={"decks": 4, "deck_type": "ranks"},
    ),
    **levels("HigherLower", HigherLower, Easy={"decks": 1}, Medium={"decks": 2}, Hard={"decks": 3}),
    **levels(
        "MultiarmedBandit",
        MultiarmedBandit,
        Easy={"arms": 10, "episode_length": 200},
        Medium={"arms": 20, "episode_length": 400},
        Hard={"arms": 30, "episode_length": 600},
    ),
    **levels(
        "RepeatFirst", RepeatFirst, Easy={"decks": 1}, Medium={"decks": 8}, Hard={"decks": 16}
    ),
    **levels(
        "RepeatPrevious",
        RepeatPrevious,
        Easy={"decks": 1, "k": 4},
        Medium={"decks": 2, "k": 32},
        Hard={"decks": 3, "k": 64},
    ),
}
"""By name: class, and the constructor's arguments that the name fixes."""
