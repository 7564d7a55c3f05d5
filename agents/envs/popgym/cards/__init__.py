"""POPGym's card games and its bandit."""

from . import pictures
from .entries import ENTRIES

__all__ = ["ENTRIES", "pictures"]
