"""Matrix memories scanned by chunks of matrix products against scans that make all states.

The gradient of a loss of all outputs, float32, episodes of 100 steps in the mean.

    python -m benchmarks.matrices --markdown
    python -m benchmarks.matrices --cells mlstm --times 32 64 1024 --widths 16 16 16
"""

from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import tyro

import zoo
from benchmarks._cells import scans_of
from benchmarks._command import command
from benchmarks._measure import (
    QUICK,
    Budget,
    Output,
    Row,
    compete,
    computed,
    gradient,
    heading,
    ratio,
)


@dataclass(frozen=True)
class Options:
    """What `python -m benchmarks.matrices` measures."""

    cells: tuple[str, ...] = ("linear_attention", "fwp", "mlstm", "deltanet", "gated_deltanet")
    """Names of cells that can be scanned in chunks."""
    times: tuple[int, ...] = (1024, 4096)
    """Numbers of steps, one for each width."""
    widths: tuple[int, ...] = (16, 32)
    """Inputs, keys and values."""
    heads: int = 1
    """Heads that these are divided among."""
    batch: int = 16
    """Sequences side by side."""
    quick: bool = False
    """Small and short, to see that it works."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


_QUICK = {"cells": ("mlstm",), "times": (8,), "widths": (2,), "heads": 1, "batch": 2}


def row_for(name: str, time: int, width: int, options: Options, budget: Budget) -> Row:
    """The row of one cell and size."""
    cell = zoo.get(name, hidden=width, inputs=width, heads=options.heads)
    by, arrays = scans_of(cell)
    xs = jax.random.normal(jax.random.key(0), (time, options.batch, width))
    begin = jax.random.bernoulli(jax.random.key(1), 0.01, (time, options.batch))

    given = arrays, xs, begin
    # All states at once where thousands of threads wait for work, as `"auto"` makes them there.
    of_states = "sequential" if jax.default_backend() == "cpu" else "associative"
    methods = {"states": by(of_states), "chunks": by("chunks")}
    results = compete({n: (gradient(f), given) for n, f in methods.items()}, budget=budget)
    states, chunks = (computed(f, *given) for f in methods.values())
    base, own = results["states"], results["chunks"]
    return {
        "cell": name,
        "steps": time,
        "width": width,
        "all states, ms": base.run_seconds * 1e3,
        "chunks, ms": own.run_seconds * 1e3,
        "× faster": ratio(base.run_seconds, own.run_seconds),
        "all states, temp MB": base.temp_bytes / 1e6,
        "chunks, temp MB": own.temp_bytes / 1e6,
        "compile s, all states": base.compile_seconds,
        "compile s, chunks": own.compile_seconds,
        "difference": float(jnp.max(jnp.abs(chunks - states)) / jnp.max(jnp.abs(states))),
    }


def run(options: Options) -> list[Row]:
    """Measure and print.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:**

    One row for each cell and size.
    """
    if len(options.times) != len(options.widths):
        raise ValueError(
            f"`times` (={options.times}) must be as many as `widths` (={options.widths})."
        )
    budget = Budget(seconds=0.5, least=3, compilations=1)
    if options.quick:
        budget, options = QUICK, replace(options, **_QUICK)
    sizes = list(zip(options.times, options.widths, strict=True))
    rows = [row_for(name, *size, options, budget) for size in sizes for name in options.cells]
    options.output.table(heading(f"With gradient, batch {options.batch}", budget=budget), rows)
    options.output.save({"matrices": rows})
    return rows


if __name__ == "__main__":
    command(run, Options, __doc__)
