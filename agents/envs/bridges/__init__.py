"""Environments of other packages: gymnax, brax and gymnasium."""

from . import pictures
from .entries import ENTRIES

__all__ = ["ENTRIES", "pictures"]
