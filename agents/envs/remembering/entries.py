"""The environments of The Act of Remembering by name."""

from ..core.entries import Entries
from .action_sequence import RECALL, RECALL_FOUR, RECALL_VARIATION, ActionSequence
from .gravity import Gravity
from .hallway_cookie import HallwayCookie
from .hallway_keys import HallwayKeys
from .minigrid_memory import MiniGridMemory
from .red_blue_doors import RedBlueDoors

ENTRIES: Entries = {
    "recall": (ActionSequence, {"rewards": RECALL, "title": "recall"}),
    "recall_variation": (
        ActionSequence,
        {"rewards": RECALL_VARIATION, "title": "recall_variation"},
    ),
    "recall_four": (ActionSequence, {"rewards": RECALL_FOUR, "title": "recall_four"}),
    "gravity": (Gravity, {}),
    "hallway_cookie": (HallwayCookie, {}),
    "hallway_keys": (HallwayKeys, {}),
    "MemoryS7": (MiniGridMemory, {"size": 7}),
    "RedBlueDoors-8x8": (RedBlueDoors, {"size": 8}),
}
"""By name: class, and the constructor's arguments that the name fixes."""
