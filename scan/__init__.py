"""Recurrences over time: linear, associative and general, each respecting episode borders."""

from scan._checks import check_begin as check_begin
from scan._checks import check_flag as check_flag
from scan._checks import check_steps as check_steps
from scan._platform import check_method as check_method
from scan._platform import chunks_or_states as chunks_or_states
from scan._platform import loop_or_tree as loop_or_tree
from scan._platform import traced_for as traced_for
from scan._varying import vary_as_carried as vary_as_carried
from scan._varying import vary_together as vary_together
from scan.associative import associative as associative
from scan.associative import resettable as resettable
from scan.blocks import blocks as blocks
from scan.chunks import delta_rule as delta_rule
from scan.chunks import outer_products as outer_products
from scan.hoisted import ahead as ahead
from scan.hoisted import hoisted as hoisted
from scan.hoisted import is_hoisted as is_hoisted
from scan.linear import linear as linear
from scan.newton import Report as Report
from scan.newton import newton as newton
from scan.nonlinear import nonlinear as nonlinear
from scan.sequential import reset as reset
from scan.sequential import sequential as sequential

__all__ = [
    "Report",
    "ahead",
    "associative",
    "blocks",
    "check_begin",
    "check_flag",
    "check_method",
    "check_steps",
    "chunks_or_states",
    "delta_rule",
    "hoisted",
    "is_hoisted",
    "linear",
    "loop_or_tree",
    "newton",
    "nonlinear",
    "outer_products",
    "reset",
    "resettable",
    "sequential",
    "traced_for",
    "vary_as_carried",
    "vary_together",
]
