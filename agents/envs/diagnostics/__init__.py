"""Prediction and diagnostics."""

from . import pictures
from .entries import ENTRIES

__all__ = ["ENTRIES", "pictures"]
