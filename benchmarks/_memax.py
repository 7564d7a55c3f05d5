"""Cells that the package memax has too: both in one run, at the same width and state."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

import zoo
from benchmarks._measure import Budget, Row, compete, gradient, ratio
from zoo.parts import Linear


class _WithMatrix(eqx.Module):
    """A cell, and a matrix behind its outputs."""

    cell: zoo.AbstractMemory
    output: Linear

    @property
    def inputs(self):
        return self.cell.inputs

    @property
    def state_size(self):
        return self.cell.state_size

    def init_state(self):
        return self.cell.init_state()

    def scan(self, state, xs, begin):
        state, ys = self.cell.scan(state, xs, begin)
        return state, jax.vmap(self.output)(ys)


def _pairs(width: int, matrix: int) -> dict[str, tuple[Any, Callable[[Any], Any]]]:
    """Ours, and a constructor of theirs, by name. Their linear RNN has no map of its input.

    Where theirs ends in a matrix of its own, ours has one behind it, to as many outputs.

    **Arguments:**

    - `width`: of the input, and units of cells whose state is a vector; memax wants them equal.
    - `matrix`: rows and columns of states that are matrices.
    """
    from memax.equinox.semigroups import delta, fart, ffm, fwp, gdn, lru, s6
    from memax.equinox.set_actions import elman, gru, lstm, mgu

    traces, contexts = 2 * matrix, 4

    def ours(name, hidden=width, **options):
        return zoo.get(name, hidden=hidden, inputs=width, **options)

    def with_matrix(name, hidden=matrix):
        cell = ours(name, hidden)
        return _WithMatrix(cell, Linear(cell.outputs, width, key=jax.random.key(2)))

    return {
        "lru": (ours("lru"), lambda key: lru.LRU(width, width, key=key)),
        "s6": (with_matrix("s6"), lambda key: s6.S6(ours("s6", matrix).state_size, width, key)),
        "ffm": (
            ours("ffm", traces=traces, contexts=contexts),
            lambda key: ffm.FFM(width, traces, contexts, key),
        ),
        "fwp": (with_matrix("fwp"), lambda key: fwp.FWP(width, matrix, key)),
        "linear_attention": (
            with_matrix("linear_attention"),
            lambda key: fart.FART(width, matrix, key),
        ),
        "deltanet": (with_matrix("deltanet"), lambda key: delta.DeltaNet(width, matrix, key)),
        "gated_deltanet": (
            with_matrix("gated_deltanet"),
            lambda key: gdn.GDN(width, matrix, key),
        ),
        "elman": (with_matrix("elman", width), lambda key: elman.Elman(width, width, key=key)),
        "gru": (ours("gru"), lambda key: gru.GRU(width, key)),
        "lstm": (ours("lstm"), lambda key: lstm.LSTM(width, key)),
        "mgu": (ours("mgu"), lambda key: mgu.MGU(width, key)),
    }


def _row(name: str, cell, make, time: int, batch: int, budget: Budget) -> Row:
    theirs, their_static = eqx.partition(make(jax.random.key(0)), eqx.is_array)
    ours, our_static = eqx.partition(cell, eqx.is_array)
    xs = jax.random.normal(jax.random.key(1), (time, batch, cell.inputs))
    begin = jnp.zeros(time, bool)

    def run_theirs(arrays, xs):
        model = eqx.combine(arrays, their_static)
        return jax.vmap(lambda xs: model(model.initialize_carry(), (xs, begin))[1], 1, 1)(xs)

    def run_ours(arrays, xs):
        cell = eqx.combine(arrays, our_static)
        return jax.vmap(lambda xs: cell.scan(cell.init_state(), xs, begin)[1], 1, 1)(xs)

    candidates = {
        "memax": (run_theirs, (theirs, xs)),
        "ours": (run_ours, (ours, xs)),
        "memax, gradient": (gradient(run_theirs), (theirs, xs)),
        "ours, gradient": (gradient(run_ours), (ours, xs)),
    }
    results = compete(candidates, budget=budget)
    row: Row = {"cell": name, "state": cell.state_size}
    for suffix in ("", ", gradient"):
        base, own = results[f"memax{suffix}"], results[f"ours{suffix}"]
        row[f"memax{suffix}, ms"] = base.run_seconds * 1e3
        row[f"ours{suffix}, ms"] = own.run_seconds * 1e3
        row[f"× faster{suffix}"] = ratio(base.run_seconds, own.run_seconds)
    row["memax, temp MB"] = results["memax, gradient"].temp_bytes / 1e6
    row["ours, temp MB"] = results["ours, gradient"].temp_bytes / 1e6
    row["memax, compile s"] = results["memax, gradient"].compile_seconds
    row["ours, compile s"] = results["ours, gradient"].compile_seconds
    return row


def against_memax(
    *, width: int, matrix: int, time: int, batch: int, budget: Budget, cells: tuple[str, ...]
) -> list[Row]:
    """Forward pass and gradient of ours and theirs.

    **Arguments:**

    - `width`: of the input, and units of cells whose state is a vector.
    - `matrix`: rows and columns of states that are matrices.
    - `time`, `batch`: steps, and sequences side by side.
    - `budget`: how long to measure.
    - `cells`: names; those that memax does not have are left out.

    **Returns:**

    One row per cell; no rows where memax is not installed.
    """
    try:
        pairs = _pairs(width, matrix)
    except ImportError:
        return []
    return [_row(name, *pair, time, batch, budget) for name, pair in pairs.items() if name in cells]
