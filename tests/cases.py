"""The tables of the conformance suites: a new cell adds a row and gets every common test."""

from collections.abc import Callable
from dataclasses import dataclass

import zoo
from tests.zoo import examples


@dataclass(frozen=True)
class CellCase:
    """One configuration of a memory.

    - `build`: called as `build(inputs, hidden, key=key)`.
    - `diagonal`: whether units depend on their own past only.
    - `present`: parameters in front of the recurrence of a composed memory. In the RTRL forms they
      learn from the present segment; every other parameter has the gradient of the whole past.
    - `variant`: differs from another row in an activation or the readout only, so that what takes
      long need not be repeated for it.
    """

    name: str
    build: Callable[..., zoo.AbstractMemory]
    diagonal: bool = True
    present: tuple[str, ...] = ()
    variant: bool = False


def _square_lru(inputs, hidden, *, key):
    return zoo.LRU(inputs, hidden, outputs=inputs, key=key)


def _nonlinear_relu(inputs, hidden, *, key):
    return zoo.NonlinearRTU(inputs, hidden, activation="relu", key=key)


def _rtu(activation):
    return lambda inputs, hidden, *, key: zoo.RTU(inputs, hidden, activation=activation, key=key)


def _one_layer(inputs, hidden, *, key):
    return zoo.Stack([zoo.Block(zoo.RTU(inputs, hidden, key=key), key=key)])


CELLS = (
    CellCase("rtu", zoo.RTU),
    CellCase("rtu-tanh", _rtu("tanh"), variant=True),
    CellCase("rtu-identity", _rtu("identity"), variant=True),
    CellCase("rtu-nonlinear", zoo.NonlinearRTU),
    CellCase("rtu-nonlinear-relu", _nonlinear_relu, variant=True),
    CellCase("lru", zoo.LRU),
    CellCase("lru-square", _square_lru, variant=True),
    CellCase("gru", zoo.GRU, diagonal=False),
    CellCase("mlp", zoo.MLP),
    CellCase("stack", _one_layer, diagonal=False, present=("norm",)),
    CellCase("real-gates", examples.RealGates),
    CellCase("complex-gates", examples.ComplexGates),
    CellCase("two-axes", examples.TwoAxes),
)
