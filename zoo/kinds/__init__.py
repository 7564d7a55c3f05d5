"""The kinds of recurrence: what scans them in parallel and how their sensitivity is structured."""

from zoo.kinds.attentive import AbstractAttentiveLayer as AbstractAttentiveLayer
from zoo.kinds.attentive import AbstractAttentiveMemory as AbstractAttentiveMemory
from zoo.kinds.dense import AbstractDenseCell as AbstractDenseCell
from zoo.kinds.dense import AbstractUnstructuredCell as AbstractUnstructuredCell
from zoo.kinds.dense import Recurrent as Recurrent
from zoo.kinds.diagonal import AbstractDiagonalCell as AbstractDiagonalCell
from zoo.kinds.finite import AbstractFiniteMemory as AbstractFiniteMemory
from zoo.kinds.linear import AbstractLinearCell as AbstractLinearCell
from zoo.kinds.monoid import AbstractMonoidCell as AbstractMonoidCell
from zoo.kinds.nonlinear import AbstractNonlinearCell as AbstractNonlinearCell
from zoo.kinds.outer_product import AbstractOuterProductCell as AbstractOuterProductCell
from zoo.kinds.time_invariant import AbstractTimeInvariantCell as AbstractTimeInvariantCell
from zoo.kinds.two_axes import AbstractTwoAxisCell as AbstractTwoAxisCell

__all__ = [
    "AbstractAttentiveLayer",
    "AbstractAttentiveMemory",
    "AbstractDenseCell",
    "AbstractDiagonalCell",
    "AbstractFiniteMemory",
    "AbstractLinearCell",
    "AbstractMonoidCell",
    "AbstractNonlinearCell",
    "AbstractOuterProductCell",
    "AbstractTimeInvariantCell",
    "AbstractTwoAxisCell",
    "AbstractUnstructuredCell",
]
