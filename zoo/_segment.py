"""The RTRL form of a segment, from what a recurrence computes and how its sensitivity is kept."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Bool, PyTree

import rtrl
import scan


def rtrl_segment(
    structure: rtrl.AbstractStructure,
    run: Callable[[Any, Any, Array, Array | None], tuple[Any, Array]],
    follow: Callable[[Any, Any, Array, Array | None], Any],
    recurrence: PyTree,
    initial: PyTree,
    carry: tuple[Any, Any],
    xs: Array,
    begin: Bool[Array, " time"] | None,
    *,
    products: bool,
) -> tuple[tuple[Any, Any], Array]:
    """`run` from a supplied state; the sensitivity rolled to the segment's end.

    **Arguments:**

    - `structure`: how the recurrence's units depend on one another.
    - `run`: the segment, `(recurrence, state, xs, begin) -> (end state, ys)`.
    - `follow`: the end state again, with the derivatives that the sensitivity follows.
    - `recurrence`: the parameters with a sensitivity, and whatever else `run` needs.
    - `initial`: the state at the beginning of an episode.
    - `carry`: `(state, sensitivity)` at the segment's start.
    - `xs`, `begin`: of the segment; time-major.
    - `products`: see `rtrl.supply`.

    **Returns:**

    `(carry, ys)`; the carry under `stop_gradient`.
    """
    start, sensitivity = jax.lax.stop_gradient(carry)
    known = sensitivity
    if begin is not None:
        start = scan.reset(begin[0], initial, start)
        known = structure.reset(begin[0], sensitivity)
    supplied = rtrl.supply(structure, recurrence, start, known, products=products)
    end, ys = run(recurrence, supplied, xs, begin)
    recurrence, start, sensitivity, xs = _detached(recurrence, start, sensitivity, xs)
    sensitivity = rtrl.roll(structure, follow, recurrence, start, sensitivity, xs, begin)
    return jax.lax.stop_gradient((end, sensitivity)), ys


def _detached(*trees):
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, trees)
