"""What each learning rule keeps, costs and loses, on a task that needs a memory.

    python -m benchmarks.rules --markdown

A cell is shown random signs and has to say the one of `lag` steps ago. Online: every segment is a
step. A seed trains once for each rule, by Adam. Along the training by the exact gradient all rules
are asked for theirs, of the same parameters and sequences: the cosine with the exact one is what
they lose. The curves go to a CSV file and a picture beside it.
"""

import csv
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
import tyro
from jaxtyping import Array

import rtrl
import zoo
from benchmarks._command import check_file, check_names, command
from benchmarks._measure import QUICK, Budget, Output, Row, compete, heading, ratio, tree_bytes
from benchmarks.depth import carried, cosine, truncated
from zoo.kinds.choices import SENSITIVITIES
from zoo.parts import Linear

EXACT, IMMEDIATE = "exact", "snap0"


@dataclass(frozen=True)
class Options:
    """What `python -m benchmarks.rules` measures."""

    cells: tuple[str, ...] = ("elman", "gru", "lstm", "elstm")
    """Names of cells."""
    rules: tuple[str, ...] = tuple(SENSITIVITIES)
    """The exact one and `snap0`, with which the others are compared, and any of these."""
    hidden: int = 16
    """Units."""
    lag: int = 4
    """How many steps ago the sign was that is asked for."""
    time: int = 32
    """Steps of a sequence."""
    batch: int = 16
    """Sequences of an update."""
    updates: int = 600
    """Updates of every training."""
    every: int = 20
    """Updates between two measurements."""
    seeds: int = 3
    """Networks and data."""
    rate: float = 3e-3
    """Adam's learning rate."""
    quick: bool = False
    """Small and short, to see that it works."""
    out: Path | None = None
    """The numbers; the picture is beside it. By default docs/assets/rules.csv; if quick, none."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


_QUICK = {
    "cells": ("elman", "elstm"), "hidden": 2, "lag": 1, "time": 3, "batch": 2,
    "updates": 4, "every": 2, "seeds": 2,
}  # fmt: skip


class _Network(eqx.Module):
    """A cell and a linear readout, with the forms that a gradient needs."""

    cell: Any
    head: Linear
    signs: Array
    """The key of UORO's signs, different for every sequence."""

    def init_state(self):
        return self.cell.init_state()

    def scan(self, state, xs, begin=None):
        state, ys = self.cell.scan(state, xs, begin)
        return state, jax.vmap(self.head)(ys)

    def rtrl_init(self):
        def own_signs(node):
            return eqx.tree_at(lambda r: r.key, node, self.signs) if _is_random(node) else node

        return jax.tree.map(own_signs, self.cell.rtrl_init(), is_leaf=_is_random)

    def rtrl_scan(self, carry, xs, begin=None):
        carry, ys = self.cell.rtrl_scan(carry, xs, begin)
        return carry, jax.vmap(self.head)(ys)


def _is_random(node: Any) -> bool:
    return isinstance(node, rtrl.RankOne)


def rules_of(options: Options, name: str) -> tuple[str, ...]:
    """Those that a cell takes; of one whose units are alone, what any memory has."""
    some = (EXACT, IMMEDIATE) if "sensitivity" not in zoo.options(name) else options.rules
    return tuple(rule for rule in SENSITIVITIES if rule in some)


def _network(options: Options, name: str, rule: str, key: Array) -> _Network:
    cell_key, head_key = jax.random.split(key)
    chosen: dict[str, Any] = {"sensitivity": rule} if "sensitivity" in zoo.options(name) else {}
    cell = zoo.get(name, hidden=options.hidden, inputs=1, key=cell_key, **chosen)
    return _Network(cell, Linear(cell.outputs, 1, key=head_key), jax.random.key_data(key))


def _with_parameters(network: _Network, parameters: Any) -> _Network:
    """The network with another's parameters, which may have another rule."""
    own, rest = eqx.partition(network, eqx.is_inexact_array)
    same = jax.tree.unflatten(jax.tree.structure(own), jax.tree.leaves(parameters))
    return eqx.combine(same, rest)


def _method(options: Options, name: str, rule: str) -> Callable[..., Any]:
    """The gradient of one sequence by a rule, `(network, xs, targets) -> gradient`."""
    if rule == EXACT:  # by BPTT over the sequence, to which RTRL's is equal
        return partial(truncated, segment=options.time)
    if "sensitivity" not in zoo.options(name):
        return partial(truncated, segment=1)
    return partial(carried, segment=1)


def _data(options: Options, key: Array) -> tuple[Array, Array]:
    shape = (options.batch, options.time, 1)
    xs = jax.random.rademacher(key, shape, float)
    return xs, jnp.pad(xs, ((0, 0), (options.lag, 0), (0, 0)))[:, : options.time]


def _gradient(options: Options, name: str, rule: str, network: Any, key: Array) -> Any:
    """The mean over a batch."""
    xs, targets = _data(options, key)
    keys = jax.vmap(jax.random.key_data)(jax.random.split(key, options.batch))

    def of_one(signs, xs, targets):
        one = eqx.tree_at(lambda n: n.signs, network, signs)
        return _method(options, name, rule)(one, xs, targets)

    gradients = jax.vmap(of_one)(keys, xs, targets)
    return jax.tree.map(lambda g: jnp.mean(g, 0), gradients)


def _loss(options: Options, network: Any, key: Array) -> Array:
    xs, targets = _data(options, key)
    _, ys = jax.vmap(network.scan, (None, 0))(network.init_state(), xs)
    return jnp.mean((ys - targets)[:, options.lag :] ** 2)


def _cosine(one: Any, other: Any) -> Array:
    """Of the cell's parameters, for which the rules differ."""
    a, b = (jnp.concatenate([x.ravel() for x in jax.tree.leaves(g.cell)]) for g in (one, other))
    return cosine(a, b)


def curves(options: Options, name: str, rule: str) -> dict[str, np.ndarray]:
    """One training of every seed by a rule, and where it is exact the cosines of all.

    **Arguments:**

    - `options`: see `Options`.
    - `name`, `rule`: of the cell and of the gradient that it trains by.

    **Returns:**

    `"loss"`, and the rules' names for the cosines: arrays `[measurements, seeds]`.
    """
    optimizer = optax.adam(options.rate)
    asked = rules_of(options, name) if rule == EXACT else ()

    def of_seed(key):
        network = _network(options, name, rule, key)
        arrays, static = eqx.partition(network, eqx.is_inexact_array)
        others = {r: _network(options, name, r, key) for r in asked}

        def update(carry, key):
            arrays, moments = carry
            found = _gradient(options, name, rule, eqx.combine(arrays, static), key)
            step, moments = optimizer.update(found, moments)
            return (optax.apply_updates(arrays, step), moments), None

        def part(carry, keys):
            network = eqx.combine(carry[0], static)
            by_rule = {
                r: _gradient(options, name, r, _with_parameters(other, carry[0]), keys[0])
                for r, other in others.items()
            }
            row = {r: _cosine(found, by_rule[EXACT]) for r, found in by_rule.items()}
            row["loss"] = _loss(options, network, jax.random.key(1))
            return jax.lax.scan(update, carry, keys)[0], row

        keys = jax.random.split(key, options.updates)
        keys = keys.reshape(-1, options.every)
        start = arrays, optimizer.init(arrays)
        (arrays, _), rows = jax.lax.scan(part, start, keys)
        end = _loss(options, eqx.combine(arrays, static), jax.random.key(1))
        return {**rows, "end": end}

    found = jax.jit(jax.vmap(of_seed))(jax.random.split(jax.random.key(0), options.seeds))
    return {key: np.asarray(value).T for key, value in found.items()}


def costs(options: Options, name: str, budget: Budget) -> dict[str, dict[str, float]]:
    """By rule, what is kept for a sequence and how long an online gradient of a batch takes."""
    key, candidates, kept = jax.random.key(0), {}, {}
    for rule in rules_of(options, name):
        network = _network(options, name, rule, key)
        arrays, static = eqx.partition(network, eqx.is_array)

        def run(arrays, key, rule=rule, static=static):
            # The exact one by RTRL too: it is the online form whose price is asked for.
            network = eqx.combine(arrays, static)
            xs, targets = _data(options, key)
            diagonal = "sensitivity" not in zoo.options(name)
            method = truncated if diagonal and rule == IMMEDIATE else carried
            return jax.vmap(partial(method, segment=1), (None, 0, 0))(network, xs, targets)

        candidates[rule] = (run, (arrays, key))
        immediate = rule == IMMEDIATE
        kept[rule] = 0 if immediate else tree_bytes(jax.eval_shape(network.rtrl_init))
    times = compete(candidates, budget=budget)
    base = times[IMMEDIATE].run_seconds
    return {
        rule: {"kept bytes": kept[rule], "× snap0's time": ratio(times[rule].run_seconds, base)}
        for rule in candidates
    }


def run(options: Options) -> dict[str, list[Row]]:
    """Measure, print, and write numbers and picture.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:**

    `rules`: a row for each cell and rule.
    """
    budget = Budget()
    out = options.out
    if options.quick:
        budget, options = QUICK, replace(options, **_QUICK)
    elif out is None:
        out = Path("docs/assets/rules.csv")
    if out is not None:
        check_file("out", out, ".csv")
    if options.updates % options.every:
        raise ValueError(
            f"`updates` (={options.updates}) must be a multiple of `every` (={options.every})."
        )
    check_names("rules", options.rules, SENSITIVITIES)
    if not {EXACT, IMMEDIATE} <= {*options.rules}:
        raise ValueError(f"`rules` (={options.rules}) must hold {EXACT} and {IMMEDIATE}.")
    rows, lines, cosines = [], [], {}
    for name in options.cells:
        price = costs(options, name, budget)
        for rule in rules_of(options, name):
            found = curves(options, name, rule)
            if rule == EXACT:
                cosines[name] = {r: found[r] for r in rules_of(options, name)}
            half = len(cosines[name][rule]) // 2
            for what, values in (("cosine", cosines[name][rule]), ("loss", found["loss"])):
                lines += [
                    [name, rule, what, seed, *(f"{v:.4f}" for v in row)]
                    for seed, row in enumerate(values.T)
                ]
            rows.append(
                {
                    "cell": name,
                    "rule": rule,
                    **price[rule],
                    "cosine, first half": float(np.mean(cosines[name][rule][:half])),
                    "cosine, second half": float(np.mean(cosines[name][rule][half:])),
                    "error at the end": float(np.mean(found["end"])),
                    "worst seed": float(np.max(found["end"])),
                }
            )
            jax.clear_caches()
    if out is not None:
        updates = range(0, options.updates, options.every)
        with out.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["cell", "rule", "what", "seed", *updates])
            writer.writerows(lines)
        draw(options, cosines, out.with_suffix(".png"))
    title = f"{options.hidden} units, the sign of {options.lag} steps ago, {options.seeds} seeds"
    options.output.table(heading(title, budget=budget), rows)
    options.output.save({"rules": rows})
    return {"rules": rows}


def draw(options: Options, cosines: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    """The picture: of every cell the cosine of each rule, a mean over seeds."""
    fig, axes = plt.subplots(
        1, len(cosines), figsize=(9, 2.9), sharey=True, squeeze=False, layout="constrained"
    )
    for ax, (name, of_rules) in zip(axes[0], cosines.items(), strict=True):
        for color, rule in enumerate(SENSITIVITIES):
            if rule in of_rules and rule != EXACT:
                values = of_rules[rule]
                updates = np.arange(len(values)) * options.every
                ax.plot(updates, values.mean(1), color=f"C{color}", linewidth=1.5, label=rule)
        ax.set(xlabel="updates", title=name, ylim=(-0.1, 1.02))
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("cosine with the exact gradient")
    lines = max((ax.get_legend_handles_labels() for ax in axes[0]), key=lambda pair: len(pair[1]))
    fig.legend(*lines, loc="outside right center", frameon=False, fontsize=8)
    fig.savefig(path, dpi=110)
    plt.close(fig)


if __name__ == "__main__":
    command(run, Options, __doc__)
