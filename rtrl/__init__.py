"""Forward-mode sensitivities of a recurrence, derived from its update by autodiff."""

from rtrl import _own_scan as _own_scan
from rtrl.accumulate import accumulate as accumulate
from rtrl.choices import RFLO as RFLO
from rtrl.choices import AbstractSensitivity as AbstractSensitivity
from rtrl.choices import EProp as EProp
from rtrl.choices import Exact as Exact
from rtrl.choices import SnAp1 as SnAp1
from rtrl.dense import Dense as Dense
from rtrl.diagonal import Diagonal as Diagonal
from rtrl.products import exact_product as exact_product
from rtrl.products import rflo_product as rflo_product
from rtrl.products import snap1_product as snap1_product
from rtrl.rows import Rounded as Rounded
from rtrl.rows import Row as Row
from rtrl.rows import rounded as rounded
from rtrl.rows import row_axes as row_axes
from rtrl.rows import rows as rows
from rtrl.segment import AbstractRecurrence as AbstractRecurrence
from rtrl.segment import segment as segment
from rtrl.shared import Parts as Parts
from rtrl.shared import Shared as Shared
from rtrl.snap0 import SnAp0 as SnAp0
from rtrl.structure import AbstractStructure as AbstractStructure
from rtrl.structure import init as init
from rtrl.structure import roll as roll
from rtrl.supply import supply as supply
from rtrl.two_axes import Axes as Axes
from rtrl.two_axes import TwoAxes as TwoAxes
from rtrl.uoro import UORO as UORO
from rtrl.uoro import RankOne as RankOne

__all__ = [
    "RFLO",
    "UORO",
    "AbstractRecurrence",
    "AbstractSensitivity",
    "AbstractStructure",
    "Axes",
    "Dense",
    "Diagonal",
    "EProp",
    "Exact",
    "Parts",
    "RankOne",
    "Rounded",
    "Row",
    "Shared",
    "SnAp0",
    "SnAp1",
    "TwoAxes",
    "accumulate",
    "exact_product",
    "init",
    "rflo_product",
    "roll",
    "rounded",
    "row_axes",
    "rows",
    "segment",
    "snap1_product",
    "supply",
]
