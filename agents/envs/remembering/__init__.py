"""The Act of Remembering: its environments, and memories around any environment."""

from . import pictures
from .entries import ENTRIES

__all__ = ["ENTRIES", "pictures"]
