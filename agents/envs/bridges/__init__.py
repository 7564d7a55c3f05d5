"""Environments of other packages: gymnax, brax, gymnasium, and those that have a port."""

from . import pictures
from .entries import ENTRIES, REFUSED, absent

__all__ = ["ENTRIES", "REFUSED", "absent", "pictures"]
