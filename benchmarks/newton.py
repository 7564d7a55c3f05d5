"""Nonlinear cells scanned by Newton's method against the loop: iterations, time, memory.

python -m benchmarks.newton --markdown
python -m benchmarks.newton --cells elstm --times 16384 --batch 1
"""

from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import tyro

import scan
import zoo
from benchmarks._cells import scans_of, tabulate
from benchmarks._command import check_names, command
from benchmarks._measure import QUICK, Budget, Output, Row, compete, computed, gradient, ratio

CELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "rtu, tanh": ("rtu", {"nonlinear": True, "activation": "tanh"}),
    "rtu, relu": ("rtu", {"nonlinear": True, "activation": "relu"}),
    "elstm": ("elstm", {}),
    "indrnn": ("indrnn", {"activation": "tanh"}),
    "gru": ("gru", {}),
}
METHODS = ("auto", "newton")


@dataclass(frozen=True)
class Options:
    """What `python -m benchmarks.newton` measures."""

    cells: tuple[str, ...] = tuple(CELLS)
    """Names of cells, of `CELLS`."""
    times: tuple[int, ...] = (1024, 4096)
    """Numbers of steps."""
    hidden: int = 64
    """Recurrent units."""
    inputs: int = 64
    """Width of the input."""
    batch: int = 16
    """Sequences side by side."""
    quick: bool = False
    """Small and short, to see that it works."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


_QUICK = {"cells": ("elstm", "gru"), "times": (8,), "hidden": 3, "inputs": 2, "batch": 2}


def iterations(cell: Any, coupling: str, xs: jax.Array) -> int:
    """The most iterations that a sequence of a batch takes.

    **Arguments:**

    - `cell`: a nonlinear cell.
    - `coupling`: see `scan.newton`.
    - `xs`: inputs, `[time, batch, features]`.

    **Returns:**

    Their number; -1 where one did not converge, and the loop computed its states.
    """
    parameters, rest = eqx.partition(cell, eqx.is_inexact_array)

    def solve(xs):
        update = lambda p, state, x: eqx.combine(p, rest).update(state, x)  # noqa: E731
        return scan.newton(update, parameters, cell.init_state(), xs, coupling=coupling)[1]

    report = computed(jax.vmap(solve, 1), xs)
    return int(jnp.max(report.iterations)) if bool(jnp.all(report.converged)) else -1


def rows_for(name: str, time: int, options: Options, budget: Budget) -> list[Row]:
    """The rows of one cell and length: forward, and with gradient."""
    registered, settings = CELLS[name]
    cell = zoo.get(registered, hidden=options.hidden, inputs=options.inputs, **settings)
    coupling = "units" if isinstance(cell, zoo.AbstractDiagonalCell) else "dense"
    by, arrays = scans_of(cell)
    xs = jax.random.normal(jax.random.key(0), (time, options.batch, options.inputs))
    taken = iterations(cell, coupling, xs)
    rows: list[Row] = []
    for kind, wrap in (("forward", lambda run: run), ("gradient", gradient)):
        results = compete({m: (wrap(by(m)), (arrays, xs)) for m in METHODS}, budget=budget)
        loop, newton = (results[m] for m in METHODS)
        rows.append(
            {
                "cell": name,
                "time": time,
                "pass": kind,
                "iterations": taken,
                "loop, ms": loop.run_seconds * 1e3,
                "Newton, ms": newton.run_seconds * 1e3,
                "× faster than the loop": ratio(loop.run_seconds, newton.run_seconds),
                "loop, temp MB": loop.temp_bytes / 1e6,
                "Newton, temp MB": newton.temp_bytes / 1e6,
                "loop, compile s": loop.compile_seconds,
                "Newton, compile s": newton.compile_seconds,
            }
        )
    return rows


def run(options: Options) -> list[Row]:
    """Measure and print.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:**

    Two rows for every cell and length.
    """
    check_names("cells", options.cells, CELLS)
    budget = Budget(compilations=1)
    if options.quick:
        budget, options = QUICK, replace(options, **_QUICK)
    return tabulate("newton", "Newton's method and the loop", rows_for, options, budget)


if __name__ == "__main__":
    command(run, Options, __doc__)
