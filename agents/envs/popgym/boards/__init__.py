"""POPGym's boards and labyrinths."""

from . import pictures
from .entries import ENTRIES

__all__ = ["ENTRIES", "pictures"]
