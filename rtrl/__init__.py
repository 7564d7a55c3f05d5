"""Forward-mode sensitivities of a recurrence, derived from its update by autodiff."""

from rtrl.accumulate import accumulate as accumulate
from rtrl.dense import Dense as Dense
from rtrl.diagonal import Diagonal as Diagonal
from rtrl.structure import AbstractStructure as AbstractStructure
from rtrl.structure import init as init
from rtrl.structure import roll as roll
from rtrl.structure import supply as supply

__all__ = ["AbstractStructure", "Dense", "Diagonal", "accumulate", "init", "roll", "supply"]
