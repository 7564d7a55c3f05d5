"""Recurrences over time: linear, associative and general, each respecting episode borders."""

from scan.associative import associative as associative
from scan.associative import resettable as resettable
from scan.linear import linear as linear
from scan.sequential import reset as reset
from scan.sequential import sequential as sequential

__all__ = ["associative", "linear", "reset", "resettable", "sequential"]
