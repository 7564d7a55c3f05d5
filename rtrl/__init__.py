"""Forward-mode sensitivities of a recurrence, derived from its update by autodiff."""

from rtrl.accumulate import accumulate as accumulate
from rtrl.approximate import exact_product as exact_product
from rtrl.approximate import rflo_product as rflo_product
from rtrl.approximate import snap1_product as snap1_product
from rtrl.dense import Dense as Dense
from rtrl.diagonal import Diagonal as Diagonal
from rtrl.structure import AbstractStructure as AbstractStructure
from rtrl.structure import init as init
from rtrl.structure import roll as roll
from rtrl.structure import supply as supply
from rtrl.two_axes import Axes as Axes
from rtrl.two_axes import TwoAxes as TwoAxes
from rtrl.uoro import UORO as UORO
from rtrl.uoro import RankOne as RankOne

__all__ = [
    "UORO",
    "AbstractStructure",
    "Axes",
    "Dense",
    "Diagonal",
    "RankOne",
    "TwoAxes",
    "accumulate",
    "exact_product",
    "init",
    "rflo_product",
    "roll",
    "snap1_product",
    "supply",
]
