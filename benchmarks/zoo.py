"""Every cell at equal state size: parameters, scans, steps, RTRL and memory.

python -m benchmarks.zoo --markdown
python -m benchmarks.zoo --cells rtu lru gru --picture zoo.png
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import tyro

import zoo
from benchmarks._command import check_file, command
from benchmarks._measure import (
    QUICK,
    Budget,
    Output,
    Row,
    compete,
    gradient,
    heading,
    ratio,
    tree_bytes,
)
from benchmarks._memax import against_memax
from benchmarks._online import repeated

BASELINE = "mlp"


@dataclass(frozen=True)
class Options:
    """What `python -m benchmarks.zoo` measures."""

    cells: tuple[str, ...] = zoo.names()
    """Names of cells."""
    state: int = 256
    """Real numbers of state that every cell comes as close to as it can."""
    inputs: int = 64
    """Width of the input."""
    times: tuple[int, ...] = (1024, 16_384)
    """Numbers of steps of the scans."""
    batch: int = 16
    """Sequences side by side."""
    most: int = 1_000_000
    """Numbers of sensitivity per environment above which RTRL is not measured."""
    picture: Path | None = None
    """Also draw the times to this file."""
    quick: bool = False
    """Small and short, to see that it works."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


_QUICK = {"cells": ("mlp", "lru", "tcn"), "state": 8, "inputs": 3, "times": (16,), "batch": 2}


def hidden_for(name: str, state: int, inputs: int) -> int:
    """The `hidden` whose state comes closest to `state` real numbers.

    **Arguments:**

    - `name`: a cell's.
    - `state`: real numbers.
    - `inputs`: width of the input.

    **Returns:**

    `hidden`; `state` itself where the state does not depend on it.
    """

    def size(hidden):
        try:
            state = eqx.filter_eval_shape(
                lambda: zoo.get(name, hidden=hidden, inputs=inputs).init_state()
            )
        except ValueError:  # too few for it
            return 0
        return sum(x.size * (1 + jnp.iscomplexobj(x)) for x in jax.tree.leaves(state))

    if size(1) == size(state):
        return state
    low, high = 1, state
    while low < high:  # the smallest that reaches it
        middle = (low + high) // 2
        low, high = (low, middle) if size(middle) >= state else (middle + 1, high)
    return min((h for h in (low - 1, low) if h), key=lambda h: abs(size(h) - state))


def learning_step(static: zoo.AbstractMemory) -> Callable:
    """A step of RTRL for a batch: from its arrays, a carry and inputs to gradient and next carry.

    Without the carry XLA would see that nobody wants the sensitivity, and make none.
    """

    def loss(arrays, carry, x):
        new, ys = jax.vmap(eqx.combine(arrays, static).rtrl_step)(carry, x)
        return jnp.sum(ys**2), new

    return jax.grad(loss, has_aux=True)


def row_for(name: str, options: Options, budget: Budget) -> Row:
    """The row of one cell; times in milliseconds, memory in megabytes or kilobytes."""
    hidden = hidden_for(name, options.state, options.inputs)
    cell = zoo.get(name, hidden=hidden, inputs=options.inputs)
    arrays, static = eqx.partition(cell, eqx.is_array)
    shapes = jax.eval_shape(cell.rtrl_init)
    kept = sum(leaf.size for leaf in jax.tree.leaves(shapes))

    state = repeated(cell.init_state(), options.batch)
    xs = jax.random.normal(jax.random.key(0), (max(options.times), options.batch, options.inputs))

    def forward(arrays, state, xs):
        cell = eqx.combine(arrays, static)
        return jax.vmap(cell.scan, (0, 1), (0, 1))(state, xs)

    stepper, fixed = eqx.partition(cell.stepper(), eqx.is_array)
    cache = repeated(cell.stepper().init_cache(), options.batch)

    def step(arrays, cache, x):
        return jax.vmap(eqx.combine(arrays, fixed).step)(cache, x)

    steps: dict[str, tuple[Callable, tuple]] = {"step": (step, (stepper, cache, xs[0]))}
    if kept <= options.most:
        carry = state, repeated(cell.rtrl_init(), options.batch)
        steps["rtrl"] = learning_step(static), (arrays, carry, xs[0])
    results = compete(steps, budget=budget)
    for time in options.times:
        given = arrays, state, xs[:time]
        scans = {
            f"forward {time}": (forward, given),
            f"gradient {time}": (gradient(lambda *given: forward(*given)[1]), given),
        }
        results |= compete(scans, budget=budget)
    row = {
        "cell": name,
        "hidden": hidden,
        "state": cell.state_size,
        "parameters": sum(x.size for x in jax.tree.leaves(arrays)),
    }
    for time in options.times:
        one, other = results[f"forward {time}"], results[f"gradient {time}"]
        row[f"forward {time}, ms"] = one.run_seconds * 1e3
        row[f"gradient {time}, ms"] = other.run_seconds * 1e3
        row[f"gradient {time}, temp MB"] = other.temp_bytes / 1e6
    row["compile s"] = results[f"gradient {options.times[0]}"].compile_seconds
    row["step µs"] = results["step"].run_seconds * 1e6
    row["state kB"] = tree_bytes(cell.init_state()) / 1e3
    row["sensitivity kB"] = tree_bytes(shapes) / 1e3
    row["RTRL step µs"] = results["rtrl"].run_seconds * 1e6 if "rtrl" in results else float("nan")
    return row


def draw(rows: list[Row], options: Options, path: Path) -> None:
    """Bars of the gradient's time of every cell, one panel for each number of steps."""
    import matplotlib.pyplot as plt

    times = options.times
    figure, axes = plt.subplots(
        1, len(times), figsize=(5 * len(times), 0.22 * len(rows) + 1), squeeze=False, sharey=True
    )
    ordered = sorted(rows, key=lambda row: row[f"gradient {times[0]}, ms"], reverse=True)
    for axis, time in zip(axes[0], times, strict=True):
        names = [row["cell"] for row in ordered]
        axis.barh(names, [row[f"gradient {time}, ms"] for row in ordered], color="#3f51b5")
        axis.barh(names, [row[f"forward {time}, ms"] for row in ordered], color="#9fa8da")
        axis.set_xscale("log")
        axis.set_xlabel(f"ms for {time:,} steps × {options.batch}")
        axis.grid(axis="x", alpha=0.3)
        axis.margins(y=0.01)
    axes[0][0].set_title("with gradient (dark), forward (light)", fontsize=9, loc="left")
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def run(options: Options) -> dict[str, list[Row]]:
    """Measure and print.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:**

    The rows of the tables `cells` and `memax`.
    """
    if options.picture is not None:
        check_file("picture", options.picture, ".png", ".pdf", ".svg")
    budget = Budget(seconds=0.3, least=3, compilations=1)
    if options.quick:
        budget, options = QUICK, replace(options, **_QUICK)
    rows = [row_for(name, options, budget) for name in options.cells]
    base = next((row for row in rows if row["cell"] == BASELINE), None)
    if base is not None:
        key = f"gradient {options.times[0]}, ms"
        rows = [{**row, "× mlp's gradient": ratio(row[key], base[key])} for row in rows]
    title = f"Cells with a state of about {options.state}, {options.inputs} inputs, "
    options.output.table(heading(f"{title}batch {options.batch}", budget=budget), rows)
    memax = against_memax(
        width=options.state,
        matrix=math.isqrt(options.state),
        time=options.times[0],
        batch=options.batch,
        budget=budget,
        cells=options.cells,
    )
    tables = {"cells": rows, "memax": memax}
    if memax:
        options.output.table(
            f"memax and ours, {options.state} inputs, {options.times[0]} steps", memax
        )
    options.output.save(tables)
    if options.picture is not None:
        draw(rows, options, options.picture)
    return tables


if __name__ == "__main__":
    command(run, Options, __doc__)
