"""Recurrences over time: linear, associative and general, each respecting episode borders."""

from scan.associative import associative as associative
from scan.associative import resettable as resettable
from scan.blocks import blocks as blocks
from scan.linear import linear as linear
from scan.newton import Report as Report
from scan.newton import newton as newton
from scan.nonlinear import nonlinear as nonlinear
from scan.sequential import reset as reset
from scan.sequential import sequential as sequential

__all__ = [
    "Report",
    "associative",
    "blocks",
    "linear",
    "newton",
    "nonlinear",
    "reset",
    "resettable",
    "sequential",
]
