"""How close a stack's gradient comes to BPTT's, by depth, segment length and credit.

Fresh networks, random inputs, the squared distance to random targets at every step, one episode of
T steps in segments. Means over seeds of the cosine between the gradients; for exact credit the
largest relative error.

    python -m benchmarks.depth --markdown
    python -m benchmarks.depth --cells rtu --float64
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import tyro
from jaxtyping import Array, Float

import rtrl
import zoo
from benchmarks._command import command
from benchmarks._measure import Output, Row

CELLS = {
    "rtu": {},
    "lru": {},
    "gru": {},
    "ffm": {"traces": 4, "contexts": 2},
}


_CREDIT = ("layerwise", "exact")


@dataclass(frozen=True)
class Options:
    """What `python -m benchmarks.depth` measures."""

    cells: tuple[str, ...] = tuple(CELLS)
    """Names of cells."""
    layers: tuple[int, ...] = (1, 2, 3, 4)
    """Depths; one layer is the bare cell, more are gated residual blocks."""
    segments: tuple[int, ...] = (1, 4, 16, 64)
    """Steps of a segment; divisors of `time`."""
    time: int = 64
    """Steps of the episode."""
    hidden: int = 8
    """Hidden units and width of the network."""
    seeds: int = 8
    """Networks and data over which the cosine is averaged."""
    float64: bool = False
    """Compute in float64."""
    quick: bool = False
    """Small and short, to see that it works."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


_QUICK = {
    "cells": ("rtu",), "layers": (2,), "segments": (2, 4), "time": 4, "hidden": 2, "seeds": 2
}  # fmt: skip


class _Truncated(eqx.Module):
    """A memory whose gradient ends at a segment's start: what `rtrl.accumulate` takes."""

    memory: zoo.AbstractMemory

    def rtrl_scan(self, carry, xs, begin=None):
        state, ys = self.memory.scan(jax.lax.stop_gradient(carry), xs, begin)
        return jax.lax.stop_gradient(state), ys


def _step_loss(y, target):
    return jnp.sum((y - target) ** 2) / 2


def truncated(memory, xs, targets, *, segment: int):
    """The gradient of TBPTT; of BPTT where the segment is the whole."""
    _, gradient, _ = rtrl.accumulate(
        _step_loss, _Truncated(memory), memory.init_state(), xs, targets=targets, segment=segment
    )
    return gradient.memory


def carried(memory, xs, targets, *, segment: int):
    """The gradient of RTRL, with the credit of the memory's own."""
    carry = memory.init_state(), memory.rtrl_init()
    return rtrl.accumulate(_step_loss, memory, carry, xs, targets=targets, segment=segment)[1]


def _vector(gradient: Any) -> Float[Array, " parameters"]:
    return jnp.concatenate([jnp.ravel(x) for x in jax.tree.leaves(gradient)])


def _lowest_cell(gradient: Any) -> Any:
    return gradient.blocks[0].cell if isinstance(gradient, zoo.Stack) else gradient


def cosine(a, b):
    """The cosine of the angle between two vectors."""
    return a @ b / jnp.linalg.norm(a) / jnp.linalg.norm(b)


def _problems(options: Options, name: str, layers: int, credit: str):
    """Memories, inputs and targets, with a leading axis over seeds."""
    recipe = zoo.spec(
        name, hidden=options.hidden, layers=layers, credit=credit, **CELLS.get(name, {})
    )

    def of_one(key):
        memory_key, x_key, target_key = jax.random.split(key, 3)
        memory = recipe.build(options.hidden, memory_key)
        xs = jax.random.normal(x_key, (options.time, memory.inputs))
        return memory, xs, jax.random.normal(target_key, (options.time, memory.outputs))

    keys = jax.random.split(jax.random.key(0), options.seeds)
    return eqx.filter_jit(eqx.filter_vmap(of_one))(keys)


def rows_for(options: Options, name: str, layers: int) -> tuple[Row, Row]:
    """One cell and depth: a row for all parameters and one for those of the lowest cell."""
    problems = {credit: _problems(options, name, layers, credit) for credit in _CREDIT}

    def gradients(credit, method, segment):
        run = eqx.filter_vmap(partial(method, segment=segment))
        return eqx.filter_jit(run)(*problems[credit])

    bptt = gradients("layerwise", truncated, options.time)
    head: Row = {"cell": name, "layers": layers}
    rows = dict(head), dict(head)
    parts = (lambda gradient: gradient), _lowest_cell
    shorter = [segment for segment in options.segments if segment < options.time]
    methods = ("RTRL", carried, options.segments), ("TBPTT", truncated, shorter)
    for label, method, segments in methods:
        for segment in segments:
            got = gradients("layerwise", method, segment)
            for row, part in zip(rows, parts, strict=True):
                alike = jax.vmap(lambda g, e, p=part: cosine(_vector(p(g)), _vector(p(e))))
                row[f"{label}({segment})"] = float(jnp.mean(alike(got, bptt)))
    errors = [jnp.zeros(options.seeds)]
    for segment in shorter:
        got, exact = (jax.vmap(_vector)(g) for g in (gradients("exact", carried, segment), bptt))
        errors.append(jnp.linalg.norm(got - exact, axis=1) / jnp.linalg.norm(exact, axis=1))
    rows[0]["exact credit: error"] = float(jnp.max(jnp.stack(errors)))
    return rows


def run(options: Options) -> dict[str, list[Row]]:
    """Measure and print; returns the rows of every table by name.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:**

    `all`, for the gradient of all parameters, and `lowest`, for that of the lowest cell's.
    """
    if options.quick:
        options = replace(options, **_QUICK)
    if options.float64:
        jax.config.update("jax_enable_x64", True)
    pairs = []
    for name in options.cells:
        for depth in options.layers:
            pairs.append(rows_for(options, name, depth))
            jax.clear_caches()  # the system lends a process so many maps for compiled programs
    tables = {name: [pair[i] for pair in pairs] for i, name in enumerate(("all", "lowest"))}
    dtype = jnp.zeros(()).dtype
    print(
        f"Cosine with BPTT's gradient: T = {options.time}, {options.hidden} units, "
        f"{options.seeds} seeds, {dtype}; RTRL(K) has layerwise credit"
    )
    options.output.table("All parameters", tables["all"])
    options.output.table("The lowest cell's parameters", tables["lowest"])
    options.output.save(tables)
    return tables


if __name__ == "__main__":
    command(run, Options, __doc__)
