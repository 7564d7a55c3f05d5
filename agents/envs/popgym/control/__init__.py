"""POPGym's cart-poles and pendulums."""

from . import pictures
from .entries import ENTRIES

__all__ = ["ENTRIES", "pictures"]
