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
    run: Callable[[Any, Any, Array, Array | None], tuple[Any, Array, Any]],
    follow: Callable[[Any, Any, tuple[Array, Any], Array | None], Any],
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
    - `run`: the segment, `(recurrence, state, xs, begin) -> (end state, ys, states)`; `states` is
      any pytree with a leading time axis, or `None`.
    - `follow`: the end state again, with the derivatives that the sensitivity follows:
      `(recurrence, state, (xs, states), begin) -> end state`.
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
    end, ys, states = run(recurrence, supplied, xs, begin)
    recurrence, start, sensitivity, known = _detached(recurrence, start, sensitivity, (xs, states))
    sensitivity = rtrl.roll(structure, follow, recurrence, start, sensitivity, known, begin)
    return jax.lax.stop_gradient((end, sensitivity)), ys


def _detached(*trees: Any) -> Any:
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, trees)
