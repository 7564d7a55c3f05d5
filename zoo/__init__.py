"""Memory cells: each defined once, each with a step, a parallel scan and two forms of RTRL."""

from zoo.base import AbstractCell as AbstractCell
from zoo.base import AbstractMemory as AbstractMemory
from zoo.gru import GRU as GRU
from zoo.kinds import AbstractDenseCell as AbstractDenseCell
from zoo.kinds import AbstractDiagonalCell as AbstractDiagonalCell
from zoo.kinds import AbstractLinearCell as AbstractLinearCell
from zoo.kinds import AbstractNonlinearCell as AbstractNonlinearCell
from zoo.kinds import AbstractTimeInvariantCell as AbstractTimeInvariantCell
from zoo.lru import LRU as LRU
from zoo.mlp import MLP as MLP
from zoo.registry import Spec as Spec
from zoo.registry import get as get
from zoo.registry import names as names
from zoo.registry import options as options
from zoo.registry import spec as spec
from zoo.rtu import RTU as RTU
from zoo.rtu import NonlinearRTU as NonlinearRTU
from zoo.stack import Block as Block
from zoo.stack import Stack as Stack

__all__ = [
    "GRU",
    "LRU",
    "MLP",
    "RTU",
    "AbstractCell",
    "AbstractDenseCell",
    "AbstractDiagonalCell",
    "AbstractLinearCell",
    "AbstractMemory",
    "AbstractNonlinearCell",
    "AbstractTimeInvariantCell",
    "Block",
    "NonlinearRTU",
    "Spec",
    "Stack",
    "get",
    "names",
    "options",
    "spec",
]
