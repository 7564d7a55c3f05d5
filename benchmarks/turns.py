"""Nonlinear cells by the steps that one turn of their loop takes, against one by one.

For a device that is started from outside for every turn, as a GPU; a CPU goes step by step. The
base is `method="sequential"`, the plain loop and its autodiff; beside it stands Newton's method
where units do not act on each other.

    python -m benchmarks.turns --markdown
    python -m benchmarks.turns --cells gru lstm --turns 1 8 --times 128
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import jax
import tyro

import zoo
from benchmarks._cells import scans_of, tabulate
from benchmarks._command import check_names, command
from benchmarks._measure import QUICK, Budget, Output, Row, compete, gradient, ratio
from benchmarks.newton import CELLS
from scan import _platform

BASELINE = "one by one"


@dataclass(frozen=True)
class Options:
    """What `python -m benchmarks.turns` measures."""

    cells: tuple[str, ...] = ("elstm", "rtu, tanh", "gru")
    """Names of cells, of `benchmarks.newton.CELLS`."""
    turns: tuple[int, ...] = (4, 8, 16, 32, 64, 128)
    """Steps of a turn."""
    times: tuple[int, ...] = (1024,)
    """Numbers of steps."""
    hidden: int = 256
    """Recurrent units."""
    inputs: int = 64
    """Width of the input."""
    batch: int = 16
    """Sequences side by side."""
    quick: bool = False
    """Small and short, to see that it works."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


_QUICK = {"cells": ("elstm",), "turns": (2,), "times": (4,), "hidden": 2, "inputs": 2, "batch": 2}


@contextmanager
def turns_of(steps: int) -> Iterator[None]:
    """While this lasts, loops are traced with so many steps in a turn, however large it gets."""
    before = _platform.MOST_UNROLLED, _platform.LARGEST_TURN
    _platform.MOST_UNROLLED = dict.fromkeys(_platform.MOST_UNROLLED, steps)
    _platform.LARGEST_TURN = 10**9
    try:
        yield
    finally:
        _platform.MOST_UNROLLED, _platform.LARGEST_TURN = before


def rows_for(name: str, time: int, options: Options, budget: Budget) -> list[Row]:
    """The rows of one cell and length: forward and with gradient, in every way."""
    registered, settings = CELLS[name]
    cell = zoo.get(registered, hidden=options.hidden, inputs=options.inputs, **settings)
    by, arrays = scans_of(cell)
    xs = jax.random.normal(jax.random.key(0), (time, options.batch, options.inputs))
    rows: list[Row] = []
    for kind, wrap in (("forward", lambda run: run), ("gradient", gradient)):
        measured = compete({BASELINE: (wrap(by("sequential")), (arrays, xs))}, budget=budget)
        for steps in options.turns:
            # Each by itself: what a turn takes is read when a program is lowered.
            with turns_of(steps):
                measured |= compete({f"{steps}": (wrap(by("auto")), (arrays, xs))}, budget=budget)
        if isinstance(cell, zoo.AbstractDiagonalCell):
            measured |= compete({"Newton": (wrap(by("newton")), (arrays, xs))}, budget=budget)
        base = measured[BASELINE].run_seconds
        rows += [
            {
                "cell": name,
                "time": time,
                "pass": kind,
                "steps of a turn": way,
                "ms": m.run_seconds * 1e3,
                f"× faster than {BASELINE}": ratio(base, m.run_seconds),
                "compile s": m.compile_seconds,
                "temp MB": m.temp_bytes / 1e6,
            }
            for way, m in measured.items()
        ]
    return rows


def run(options: Options) -> list[Row]:
    """Measure and print.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:**

    Rows for every cell and length; none on a CPU, but for `quick`.
    """
    check_names("cells", options.cells, CELLS)
    if min(options.turns, default=0) < 1:
        raise ValueError(f"`turns` (={options.turns}) must be numbers of steps, 1 at the least.")
    budget = Budget(seconds=0.3, least=3, compilations=1)
    if options.quick:
        budget, options = QUICK, replace(options, **_QUICK)
    elif jax.default_backend() == "cpu":
        print("not measured: a CPU goes step by step")
        return []
    return tabulate("turns", "Turns of a loop", rows_for, options, budget)


if __name__ == "__main__":
    command(run, Options, __doc__)
