"""The gradient of a sequence by BPTT, TBPTT and RTRL: time and memory, and the online loop.

Every gradient is that of the mean over a batch of 16, time-major, mapped over axis 1.

    python -m benchmarks.gradients --markdown
    python -m benchmarks.gradients --cells rtu --named
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import tyro

import rtrl
import zoo
from benchmarks import _online
from benchmarks._command import command
from benchmarks._measure import (
    QUICK,
    Budget,
    Output,
    Row,
    compete,
    computed,
    heading,
    ratio,
    tree_bytes,
)

BASELINE = "BPTT"
PLAIN = "8 real traces, written plainly"
OURS = "rtrl_step"
OURS_BEHIND = "rtrl_step, batch axis of S behind the units"
BATCH = 16
CELLS = ("rtu", "nonlinear rtu", "lru", "gru")
# Dense RTRL costs the fourth power of the hidden units: one small GRU.
GRU_SIZES = {"hidden": 16, "inputs": 16}


@dataclass(frozen=True)
class Options:
    """What `python -m benchmarks.gradients` measures."""

    cells: tuple[str, ...] = CELLS
    """Any of: rtu, "nonlinear rtu", lru, gru."""
    times: tuple[int, ...] = (64, 256, 1024)
    """Numbers of steps, at the middle hidden and the last inputs."""
    hidden: tuple[int, ...] = (32, 96, 256)
    """Hidden units, at the middle time and the last inputs."""
    inputs: tuple[int, ...] = (16, 64)
    """Input widths, at the middle time and hidden."""
    batch: int = BATCH
    """Sequences side by side."""
    named: bool = False
    """Only the named sizes: the middle time and hidden, the last inputs."""
    quick: bool = False
    """Small and short, to see that it works."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


_QUICK = {"cells": ("rtu",), "times": (16,), "hidden": (4,), "inputs": (3,), "batch": 2}


class _Batched(eqx.Module):
    """A cell on a batch, time-major: what a user hands to `rtrl.accumulate`."""

    cell: zoo.AbstractMemory

    def rtrl_scan(self, carry, xs, begin=None):
        return jax.vmap(self.cell.rtrl_scan, (0, 1, None), (0, 1))(carry, xs, begin)


def make_cell(name: str, hidden: int, inputs: int) -> zoo.AbstractMemory:
    """A cell by the name that the tables use."""
    if name == "nonlinear rtu":
        return zoo.get("rtu", hidden=hidden, inputs=inputs, nonlinear=True)
    return zoo.get(name, hidden=hidden, inputs=inputs)


def make_data(cell: zoo.AbstractMemory, time: int, batch: int) -> tuple[Any, Any, Any]:
    """`(carry, xs, targets)` in the cell's dtype: a carry from the middle of an episode."""
    dtype = jnp.result_type(*jax.tree.leaves(eqx.filter(cell, eqx.is_inexact_array)))
    keys = jax.random.split(jax.random.key(1), 3)
    xs = jax.random.normal(keys[0], (time, batch, cell.inputs), dtype)
    targets = jax.random.normal(keys[1], (time, batch, cell.outputs), dtype)
    start = _online.library_carry(cell, batch)
    before = jax.random.normal(keys[2], (8, batch, cell.inputs), dtype)
    carry, _ = jax.jit(lambda c, carry, xs: _Batched(c).rtrl_scan(carry, xs))(cell, start, before)
    return carry, xs, targets


def _sum_of_losses(ys, targets):
    return jnp.sum(jax.vmap(_online.step_loss)(ys, targets))


# Each takes (cell, carry, xs, targets) and returns (loss, gradient, new carry or state).


def bptt(cell, carry, xs, targets):
    """One segment by `cell.scan`; the carried state is a constant."""

    def loss(cell):
        state, ys = jax.vmap(cell.scan, (0, 1), (0, 1))(carry[0], xs)
        return _sum_of_losses(ys, targets), state

    (value, state), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(cell)
    return value, gradient, state


def tbptt(cell, carry, xs, targets, *, length: int = 8):
    """Segments of `length`, gradients added up inside the loop."""
    cut = lambda x: x.reshape(-1, length, *x.shape[1:])  # noqa: E731

    def step(totals, piece):
        value, gradient, state = totals
        new_value, new, state = bptt(cell, (state, None), *piece)
        return (value + new_value, jax.tree.map(jnp.add, gradient, new), state), None

    zeros = jax.tree.map(jnp.zeros_like, eqx.filter(cell, eqx.is_inexact_array))
    start = (jnp.zeros((), xs.dtype), zeros, carry[0])
    return jax.lax.scan(step, start, (cut(xs), cut(targets)))[0]


def rtrl_segment(cell, carry, xs, targets):
    """One segment by `rtrl_scan`, sensitivity rolled to its end."""

    def loss(cell):
        new_carry, ys = _Batched(cell).rtrl_scan(carry, xs)
        return _sum_of_losses(ys, targets), new_carry

    (value, carry), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(cell)
    return value, gradient, carry


def rtrl_accumulate(cell, carry, xs, targets, *, segment: int):
    """`rtrl.accumulate` over the batch."""
    value, gradient, carry = rtrl.accumulate(
        _online.step_loss, _Batched(cell), carry, xs, targets=targets, segment=segment
    )
    return value, gradient.cell, carry


def rtrl_naive(cell, carry, xs, targets):
    """`jax.grad` through a loop over `rtrl_step`: one sensitivity per step is kept."""

    def loss(cell):
        def step(carry, inputs):
            x, target = inputs
            carry, y = jax.vmap(cell.rtrl_step)(carry, x)
            return carry, _online.step_loss(y, target)

        new_carry, losses = jax.lax.scan(step, carry, (xs, targets))
        return jnp.sum(losses), new_carry

    (value, carry), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(cell)
    return value, gradient, carry


GRADIENTS = {
    BASELINE: bptt,
    "TBPTT(8)": partial(tbptt, length=8),
    "RTRL segment": rtrl_segment,
    "rtrl.accumulate(1)": partial(rtrl_accumulate, segment=1),
    "rtrl.accumulate(8)": partial(rtrl_accumulate, segment=8),
    "rtrl.accumulate(32)": partial(rtrl_accumulate, segment=32),
    "grad of rtrl_step loop": rtrl_naive,
}


def steps_of(gradient: Any) -> int:
    """Of how many steps the pieces are that a gradient cuts a sequence into."""
    (steps,) = getattr(gradient, "keywords", {}).values() or (1,)
    return steps


def rows_for(name: str, time: int, hidden: int, inputs: int, batch: int, budget: Budget):
    """The rows of one cell and size: every gradient against BPTT."""
    cell = make_cell(name, hidden, inputs)
    data = make_data(cell, time, batch)
    arrays, static = eqx.partition(cell, eqx.is_array)
    sensitivity_bytes = tree_bytes(cell.rtrl_init())

    def candidate(gradient):
        return lambda arrays, *data: gradient(eqx.combine(arrays, static), *data)

    chosen = {k: g for k, g in GRADIENTS.items() if time % steps_of(g) == 0}
    results = compete(
        {k: (candidate(g), (arrays, *data)) for k, g in chosen.items()}, budget=budget
    )
    base = results[BASELINE]
    return [
        {
            "cell": name,
            "time": time,
            "hidden": hidden,
            "inputs": inputs,
            "gradient": k,
            "ms": m.run_seconds * 1e3,
            "× BPTT's time": ratio(m.run_seconds, base.run_seconds),
            "temp MB": m.temp_bytes / 1e6,
            "× BPTT's temp": ratio(m.temp_bytes, base.temp_bytes),
            "temp in sensitivities": ratio(m.temp_bytes, batch * sensitivity_bytes),
            "compile s": m.compile_seconds,
        }
        for k, m in results.items()
    ]


def online_rows(hidden: int, inputs: int, time: int, batch: int, budget: Budget) -> list[Row]:
    """Our online loop and the plain one, after a check that they have the same gradient."""
    cell = zoo.RTU(inputs, hidden, key=jax.random.key(0))
    _, xs, targets = make_data(cell, time, batch)
    arrays, static = eqx.partition(cell, eqx.is_array)

    def our_step(axis, arrays, carry, x, target):
        cell = eqx.combine(arrays, static)
        value, gradient, carry = _online.library_step(cell, carry, x, target, axis=axis)
        return value, eqx.filter(gradient, eqx.is_array), carry

    def ours(axis):
        carry = _online.library_carry(cell, batch, axis)
        return partial(our_step, axis), arrays, carry, cell.rtrl_init()

    parameters = _online.plain_parameters(cell)
    start = _online.plain_carry(parameters, batch)
    plain = _online.plain_step, parameters, start, _online.plain_carry(parameters, 1)[1]
    loops = {OURS: ours(0), OURS_BEHIND: ours(1), PLAIN: plain}

    def total(name):
        step, parameters, carry, _ = loops[name]
        of_all = partial(_online.total_gradient, step)
        gradient = computed(of_all, parameters, carry, xs, targets)
        return (
            gradient if name == PLAIN else _online.plain_parameters(eqx.combine(gradient, static))
        )

    reference = total(PLAIN)
    errors = {name: _relative_error(total(name), reference) for name in loops}
    results = compete(
        {
            name: (partial(_online.sgd, step), (p, carry, xs, targets))
            for name, (step, p, carry, _) in loops.items()
        },
        budget=budget,
    )
    base = results[PLAIN]
    return [
        {
            "online loop": name,
            "time": time,
            "hidden": hidden,
            "inputs": inputs,
            "µs per step": m.run_seconds / time * 1e6,
            "× faster than plain": ratio(base.run_seconds, m.run_seconds),
            "sensitivity kB per environment": tree_bytes(loops[name][3]) / 1e3,
            "temp MB": m.temp_bytes / 1e6,
            "compile s": m.compile_seconds,
            "gradient's relative difference": errors[name],
        }
        for name, m in results.items()
    ]


def _relative_error(tree, reference) -> float:
    """The largest difference of a leaf, relative to the largest entry of the reference's leaf."""
    errors = jax.tree.map(
        lambda x, y: jnp.max(jnp.abs(x - y)) / jnp.max(jnp.abs(y)), tree, reference
    )
    return float(max(jax.tree.leaves(errors)))


def sizes(options: Options, name: str) -> Iterator[tuple[int, int, int]]:
    """The `(time, hidden, inputs)` of a cell: one of them varied at a time."""
    time, hidden = (x[len(x) // 2] for x in (options.times, options.hidden))
    inputs = options.inputs[-1]
    yield time, hidden, inputs
    if options.named:
        return
    yield from ((t, hidden, inputs) for t in options.times if t != time)
    if name != "gru":
        yield from ((time, h, inputs) for h in options.hidden if h != hidden)
        yield from ((time, hidden, i) for i in options.inputs if i != inputs)


def run(options: Options) -> dict[str, list[Row]]:
    """Measure and print; returns the rows of every table by name.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:**

    `online` and `gradients`.
    """
    budget = Budget()
    if options.quick:
        budget, options = QUICK, replace(options, **_QUICK)
    output = options.output
    time, hidden, inputs = next(sizes(options, "rtu"))
    tables = {"online": online_rows(hidden, inputs, time, options.batch, budget), "gradients": []}
    output.table(heading("Online learning", budget=budget), tables["online"])
    for name in options.cells:
        rows = []
        for time, hidden, inputs in sizes(options, name):
            size = {"hidden": hidden, "inputs": inputs}
            if name == "gru":
                size = {k: min(size[k], GRU_SIZES[k]) for k in size}
            rows += rows_for(name, time, **size, batch=options.batch, budget=budget)
        output.table(f"Gradients of {name}, batch {options.batch}", rows)
        tables["gradients"] += rows
    output.save(tables)
    return tables


if __name__ == "__main__":
    command(run, Options, __doc__)
