"""Which entries of a state really depend on which, and on which entries of the parameters."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import rtrl
from zoo.cell import AbstractCell
from zoo.memory import State
from zoo.proofs.forms import jit
from zoo.proofs.loop import surrogate_step

_MOST_UNITS = 64


@dataclass(frozen=True)
class Leak:
    """A number that a promise says is zero.

    - `size`: the largest such derivative.
    - `where`: the parameter, or `"state"`.
    - `said`: the promise.
    """

    size: float
    where: str
    said: str


def one_step(cell: AbstractCell) -> tuple[Any, Callable[[Any, State, Array], State]]:
    """What a sensitivity follows in one step, by plain autodiff.

    **Returns:**

    `(parameters, function)`, the function called as `function(parameters, state, x)`.
    """
    parameters = cell.recurrence_parameters()
    if not isinstance(parameters, AbstractCell):

        def last(parameters, state, x):
            return jax.tree.map(lambda h: h[0], cell.states(parameters, state, x[None], None))

        return parameters, last
    # Not `states`: where units are said not to act on each other it takes that for granted.
    return parameters, surrogate_step


def _floats(tree):
    return eqx.partition(tree, eqx.is_inexact_array)


@jit
def _cotangents(cell, state, x, where):
    """Cotangents of parameters and state for a one at each place of each leaf of the next state.

    **Returns:**

    For every leaf of the state, magnitudes with a leading axis over the places.
    """
    parameters, function = one_step(cell)
    (parameters, rest), (floats, others) = _floats(parameters), _floats(state)

    def of_floats(parameters, floats):
        return _floats(function(eqx.combine(parameters, rest), eqx.combine(floats, others), x))[0]

    end, pullback = jax.vjp(of_floats, parameters, floats)
    leaves, treedef = jax.tree.flatten(end)

    def at(k, place, one):
        probes = [jnp.zeros_like(leaf) for leaf in leaves]
        probes[k] = probes[k].reshape(-1).at[place].set(one).reshape(leaves[k].shape)
        return jax.tree.map(jnp.abs, pullback(jax.tree.unflatten(treedef, probes)))

    out = []
    for k, leaf in enumerate(leaves):
        found = jax.vmap(lambda place, k=k: at(k, place, 1.0))(where)
        if jnp.iscomplexobj(leaf):
            imaginary = jax.vmap(lambda place, k=k: at(k, place, 1j))(where)
            found = jax.tree.map(jnp.maximum, found, imaginary)
        out.append(found)
    return out


def leaks(cell: AbstractCell, state: State, x: Array) -> list[Leak]:
    """The largest derivative, for every parameter and the state, that the structure says is zero.

    **Arguments:**

    - `cell`: a cell, at parameters that are not special.
    - `state`: a state that it can be in.
    - `x`: an input.

    **Returns:**

    One for the state and one for every parameter; none where nothing is promised.

    **Raises:**

    `ValueError` where the state's leaves do not have one shape, as the structure wants them.
    """
    structure = cell.structure
    leaves = [h for h in jax.tree.leaves(state) if jnp.issubdtype(h.dtype, jnp.inexact)]
    if not leaves or not isinstance(structure, (rtrl.Diagonal, rtrl.TwoAxes)):
        return []
    # The others are constants of the parameters: a stabilizer that cancels in the readout.
    tracked = 1 if isinstance(structure, rtrl.TwoAxes) else structure.components or len(leaves)
    units = leaves[0].shape
    for leaf in leaves[:tracked]:
        if leaf.shape != units:
            raise ValueError(
                f"the state has components of shape {units} and {leaf.shape}: those of "
                f"{type(structure).__name__} have one shape."
            )
    size = math.prod(units)
    where = np.unique(np.linspace(0, size - 1, min(size, _MOST_UNITS)).astype(int))
    found = []
    for of_parameters, of_state in _cotangents(cell, state, x, where)[:tracked]:
        parts = {"units": of_parameters}
        if isinstance(structure, rtrl.TwoAxes):
            parts = {kind: getattr(of_parameters, kind) for kind in ("both", "rows", "columns")}
        for kind, part in parts.items():
            prefix = _prefix(cell) + ("" if kind == "units" else f".{kind}")
            for path, touched in jax.tree_util.tree_leaves_with_path(part):
                name = f"{prefix}{jax.tree_util.keystr(path)}"
                found.append(_leak(np.asarray(touched), units, where, kind, name))
        for path, touched in jax.tree_util.tree_leaves_with_path(of_state)[:tracked]:
            name = f"state{jax.tree_util.keystr(path)}"
            found.append(_leak(np.asarray(touched), units, where, "state", name))
    return found


_SAID = {
    "units": "the leading axes of a parameter are the units, and each unit uses its own entries",
    "both": "the leading axes of a parameter in `both` are rows and columns",
    "rows": "the leading axes of a parameter in `rows` are rows, and each acts on its own row",
    "columns": "the leading axes of a parameter in `columns` are columns, each acting on its own",
    "state": "every unit depends on its own past only",
}


def _leak(touched, units, where, kind, name):
    """What is touched beside the own entries, where `touched` has a leading axis over `where`."""
    # With an axis of one, as NumPy unravels no place in the shape ().
    places = np.stack(np.unravel_index(where, (1, *units)), -1)[:, 1:]  # [places, axes]
    axes = {"rows": range(len(units) - 1), "columns": [*range(len(units) - 2), len(units) - 1]}
    own_axes = list(axes.get(kind, range(len(units))))
    leading = tuple(units[axis] for axis in own_axes)
    shape = touched.shape[1:]
    if not np.any(touched):  # it does not enter the recurrence
        return Leak(0.0, name, _SAID[kind])
    fits = shape[: len(leading)] == leading
    if kind == "columns":  # they may be fewer than the state's
        fits = len(shape) >= len(leading) and shape[: len(leading) - 1] == leading[:-1]
    if not fits:
        said = f"{_SAID[kind]}; its shape is {shape}, the units are {leading}"
        return Leak(float(np.max(touched)), name, said)
    grid = shape[: len(leading)]
    touched = touched.reshape(len(where), *grid, -1).max(-1)
    for i, place in enumerate(places):
        own = tuple(place[own_axes])
        if all(o < g for o, g in zip(own, grid, strict=True)):
            touched[(i, *own)] = 0
    return Leak(float(np.max(touched)), name, _SAID[kind])


@jit
def _turned(cell, state, x):
    """How much a cotangent turned by 90 degrees gives more than the cotangent's result, turned."""
    parameters, function = one_step(cell)
    (parameters, rest), (floats, others) = _floats(parameters), _floats(state)

    def of_floats(parameters, floats):
        end = function(eqx.combine(parameters, rest), eqx.combine(floats, others), x)
        return _floats(end)[0]

    end, pullback = jax.vjp(of_floats, parameters, floats)
    leaves, treedef = jax.tree.flatten(end)
    rng = np.random.default_rng(0)
    random = [rng.normal(size=h.shape) + 1j * rng.normal(size=h.shape) for h in leaves]
    random = [r if jnp.iscomplexobj(h) else r.real for r, h in zip(random, leaves, strict=True)]
    straight = pullback(treedef.unflatten(random))
    turned = pullback(treedef.unflatten([1j * h if jnp.iscomplexobj(h) else h for h in random]))

    def gap(s, t):
        return jnp.max(jnp.abs(1j * s - t)) if jnp.iscomplexobj(s) else None

    return [jax.tree.map(gap, s, t) for s, t in zip(straight, turned, strict=True)]


def not_holomorphic(cell: AbstractCell, state: State, x: Array) -> list[Leak]:
    """How far a complex recurrence is from obeying Cauchy and Riemann's equations.

    **Returns:**

    One for every complex leaf of the state and of the recurrence's parameters; none where nothing
    is complex, or the structure does not rely on it.
    """
    if not isinstance(cell.structure, (rtrl.Diagonal, rtrl.TwoAxes)):
        return []
    if not any(jnp.iscomplexobj(h) for h in jax.tree.leaves(state)):
        return []
    of_parameters, of_state = _turned(cell, state, x)
    said = "a complex recurrence is holomorphic: no conjugate, no absolute value, no real part"
    return [
        Leak(float(gap), f"{prefix}{jax.tree_util.keystr(path)}", said)
        for prefix, gaps in ((_prefix(cell), of_parameters), ("state", of_state))
        for path, gap in jax.tree_util.tree_leaves_with_path(gaps)
    ]


def _prefix(cell):
    parameters = eqx.filter_eval_shape(lambda cell: cell.recurrence_parameters(), cell)
    return "" if isinstance(parameters, AbstractCell) else "recurrence_parameters()"
