"""The tables of the conformance suites: a new cell adds a row and gets every common test."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest

import rtrl
import zoo
from tests.zoo import examples
from zoo.parts import Linear


@dataclass(frozen=True)
class CellCase:
    """One configuration of a memory.

    - `build`: called as `build(inputs, hidden, key=key)`.
    - `diagonal`: whether units depend on their own past only.
    - `present`: parameters in front of the recurrence of a composed memory. In the RTRL forms they
      learn from the present segment; every other parameter has the gradient of the whole past.
    - `variant`: another row's class with other coefficients, for the tests of those only.
    - `fewest`: how many units it has at least.
    - `growth`: `(c, p)`: outputs stay below `c (1 + scale)^p` for inputs of a scale.
    - `reachable`: makes a state of random numbers one that the recurrence can be in.
    """

    name: str
    build: Callable[..., zoo.AbstractMemory]
    diagonal: bool = True
    present: tuple[str, ...] = ()
    variant: bool = False
    reachable: Callable[[Any], Any] = lambda state: state
    fewest: int = 1
    growth: tuple[float, int] = (1e3, 1)


def _with(kind, **options):
    return lambda inputs, hidden, *, key: kind(inputs, hidden, key=key, **options)


def _retnet(inputs, hidden, *, key):
    return zoo.RetNet(inputs, hidden, heads=2 if hidden % 4 == 0 else 1, key=key)


def _headed(name, **options):
    """With two heads where they divide the width."""
    return lambda inputs, hidden, *, key: _named(name, heads=2 - hidden % 2, **options)(
        inputs, hidden, key=key
    )


def _positive(state):
    return jax.tree.map(np.abs, state)


def _named(name, **options):
    return lambda inputs, hidden, *, key: zoo.get(
        name, inputs=inputs, hidden=hidden, key=key, **options
    )


def _counted(state):
    """The last leaf is a number of steps, below the few that a small case remembers."""
    *rest, count = jax.tree.leaves(state)
    return jax.tree.unflatten(jax.tree.structure(state), [*rest, np.round(np.abs(count)) % 3])


def _finite(state):
    past, count = _counted(state)
    return np.where(np.arange(len(past), 0, -1)[:, None] <= count, past, 0), count


def _average(state):
    past, (a, b, m, s) = state
    return past, (a, np.abs(b) + 0.1, m, s)


def _weights(state):
    return jax.tree.map(lambda x: np.abs(x) / (4 + 4 * np.abs(x)), state)


def _one_layer(inputs, hidden, *, key):
    return zoo.Stack([zoo.Block(zoo.RTU(inputs, hidden, key=key), norm=inputs > 1, key=key)])


def _fronted(inputs, hidden, *, key, of=zoo.RTU, **options):
    front_key, cell_key = jax.random.split(key)
    front = Linear(inputs, inputs + 1, key=front_key)
    cell = of(inputs + 1, hidden, key=cell_key, **options)
    return zoo.Fronted(front, cell, inputs=inputs)


def _two_layers(inputs, hidden, *, key, **options):
    keys = jax.random.split(key, 4)
    cells = zoo.RTU(inputs, hidden, key=keys[0]), zoo.GRU(inputs, hidden + 1, key=keys[1])
    upper = zoo.Block(cells[1], norm=False, gated=False, key=keys[3])
    lower = zoo.Block(cells[0], norm=inputs > 1, key=keys[2])
    return zoo.Stack([lower, upper], **options)


# What credit from layer to layer loses has tests of its own, so this is not a row.
TWO_LAYERS = CellCase("two layers", _two_layers, diagonal=False)

CELLS = (
    CellCase("rtu", zoo.RTU),
    CellCase("rtu-sigmoid", _with(zoo.RTU, modulus="sigmoid", phase="direct"), variant=True),
    CellCase("rtu-nonlinear", zoo.NonlinearRTU),
    CellCase("lru", zoo.LRU),
    CellCase("gru", zoo.GRU, diagonal=False),
    CellCase("mlp", zoo.MLP),
    CellCase("stack", _one_layer, diagonal=False, present=("norm",)),
    CellCase("fronted", _fronted, diagonal=False),
    CellCase("stack-exact", _with(_two_layers, credit="exact"), diagonal=False),
    CellCase("complex-gates", examples.ComplexGates),
    CellCase("two-axes", examples.TwoAxes),
    CellCase("monoid", examples.Affine, diagonal=False),
    CellCase("block_diagonal", zoo.BlockDiagonal),
    CellCase("elman", zoo.Elman, diagonal=False),
    CellCase("elstm", zoo.ELSTM),
    CellCase("felstm", zoo.FeLSTM, diagonal=False),
    CellCase("ffm", _with(zoo.FFM, traces=3, contexts=2), diagonal=False, fewest=2),
    CellCase("ffm-hadamard", _with(zoo.FFM, traces=3, contexts=2, hadamard=True), diagonal=False),
    CellCase("fwp", _headed("fwp", keys=3), diagonal=False, growth=(1e5, 2)),
    CellCase("gtrxl", _with(zoo.GTrXL, window=3), diagonal=False, reachable=_finite),
    CellCase("indrnn", _with(zoo.IndRNN, activation="tanh")),
    CellCase(
        "linear_attention",
        _headed("linear_attention", keys=3),
        diagonal=False,
        reachable=_positive,
    ),
    CellCase("linear_rnn", zoo.LinearRNN),
    CellCase("linoss", zoo.LinOSS),
    CellCase("linoss-imex", _with(zoo.LinOSS, discretization="imex"), variant=True),
    CellCase("lstm", zoo.LSTM, diagonal=False),
    CellCase("ltc", _with(zoo.LTC, time_step="input", unfolds=2), diagonal=False),
    CellCase("mgu", zoo.MGU, diagonal=False),
    CellCase("mingru", zoo.MinGRU),
    CellCase("minlstm", zoo.MinLSTM),
    CellCase("retnet", _retnet, diagonal=False),
    CellCase("rotrnn", zoo.RotRNN),
    CellCase("s4d", _with(zoo.S4D, states=2), diagonal=False),
    CellCase("s5", zoo.S5),
    CellCase("sru", zoo.SRU),
    CellCase("deltanet", _named("deltanet", keys=3), diagonal=False),
    CellCase("ctrnn", zoo.CTRNN, diagonal=False),
    CellCase(
        "ctrnn-times",
        _with(zoo.CTRNN, time_step="input", solver="exponential", unfolds=2),
        diagonal=False,
        variant=True,
    ),
    CellCase("delta_product", _named("delta_product", keys=3, gated=True), diagonal=False),
    CellCase("dnc", _with(zoo.DNC, slots=2, word=4), diagonal=False, reachable=_weights),
    CellCase("frame_stack", _named("frame_stack"), diagonal=False),
    CellCase("gated_deltanet", _headed("gated_deltanet", keys=3), diagonal=False),
    CellCase(
        "gated_linear_attention",
        lambda inputs, hidden, *, key: zoo.GatedLinearAttention(
            inputs, hidden, heads=2 if hidden % 4 == 0 else 1, keys=3, rank=2, key=key
        ),
        diagonal=False,
    ),
    CellCase("lmu", _with(zoo.LMU, order=3, theta=4.0), diagonal=False),
    CellCase("mamba2", _headed("mamba2", states=3), diagonal=False),
    CellCase("mlstm", _headed("mlstm", keys=3), diagonal=False),
    CellCase("positional_mlp", zoo.PositionalMLP, diagonal=False, reachable=_counted),
    CellCase("qrnn", _named("qrnn"), diagonal=False),
    CellCase("rwkv", _named("rwkv"), diagonal=False, reachable=_average),
    CellCase("s6", _with(zoo.S6, states=3), diagonal=False, growth=(1e3, 5)),
    CellCase(
        "s6-signal",
        _with(zoo.S6, states=2, reads="signal"),
        diagonal=False,
        variant=True,
        growth=(1e3, 5),
    ),
    CellCase(
        "shm",
        _with(zoo.SHM, keys=3, calibrations=5),
        diagonal=False,
        reachable=_counted,
        growth=(1e5, 3),
    ),
    CellCase("tcn", _with(zoo.TCN, blocks=2), diagonal=False, reachable=_finite),
    CellCase(
        "transformer",
        _with(zoo.Transformer, depth=2, window=3),
        diagonal=False,
        fewest=2,
        reachable=_finite,
    ),
    CellCase("ttt", zoo.TTT, diagonal=False),
)


# What approximates: the gradient of RTRL is that of the rule, and not exact (`zoo.prove`).
RULES = (
    CellCase("gru-snap0", _with(zoo.GRU, sensitivity=rtrl.SnAp0()), diagonal=False),
    CellCase("lstm-eprop", _with(zoo.LSTM, sensitivity=rtrl.EProp()), diagonal=False),
    CellCase(
        "fronted-eprop",
        _with(_fronted, of=zoo.GRU, sensitivity=rtrl.EProp()),
        diagonal=False,
    ),
)
# Every class has a row for its proof (`tests/zoo/test_forms.py`), and its variants have none.
DISTINCT = tuple(case for case in CELLS if not case.variant)
# One row of every kind of recurrence and of composition, for what cells inherit.
KINDS = tuple(
    case
    for case in CELLS
    if case.name
    in (
        *("rtu", "rtu-nonlinear", "mingru", "gru", "ffm", "lmu", "monoid"),
        *("transformer", "qrnn", "stack", "stack-exact"),
    )
)
# And of what differentiates in a way of its own: blocks, a front, stabilizers, products in chunks.
# What other cells define is an update and a readout; everything that is made of them is a kind's.
RULED = tuple(
    case
    for case in CELLS
    if case in KINDS
    or case.name
    in (
        *("block_diagonal", "elstm", "fronted", "mlstm", "rwkv"),
        *("deltanet", "delta_product"),
    )
)
# For the quick tests of what all cells inherit.
FEWER = ("rtu",)


def slow_but(
    quick: Iterable[Any],
    values: Iterable[Any],
    name: Callable[[Any], Any] = lambda value: value,
    *,
    several: bool = True,
) -> list[Any]:
    """Rows of a parametrized test, of which all are slow but those that are named.

    - `quick`: what `name` gives for the others.
    - `several`: whether a tuple is a row of several values.
    """
    quick = tuple(quick)
    return [
        pytest.param(
            *(value if several and isinstance(value, tuple) else (value,)),
            marks=[] if name(value) in quick else [pytest.mark.slow],
        )
        for value in values
    ]


def for_each(
    cases: Iterable[CellCase], *, quick: Iterable[str] | None = None
) -> pytest.MarkDecorator:
    """Run a test for every row, as `case`.

    - `quick`: mark all rows slow but these.
    """
    cases = tuple(cases)
    quick = [case.name for case in cases] if quick is None else quick
    rows = slow_but(quick, cases, lambda case: case.name)
    return pytest.mark.parametrize("case", rows, ids=lambda case: case.name)
