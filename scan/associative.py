"""Scans of any associative operator, and the transform that makes an operator resettable."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from scan._checks import check_begin, check_steps
from scan._varying import broadcast_like, vary_together
from scan.trees import broadcasts, described

Combine = Callable[[Any, Any], Any]


def match_rank(flag: Array, leaf: Array) -> Array:
    """Append axes of length 1 to `flag`, so that it broadcasts over the trailing axes of `leaf`."""
    return flag.reshape(flag.shape + (1,) * (leaf.ndim - flag.ndim))


def resettable(combine: Combine) -> Combine:
    """Make an associative operator respect episode borders.

    The new operator works on pairs `(element, begin)`. A `begin` on the later element discards
    the earlier one, and the flags are OR-ed, so that a border is not forgotten when segments are
    combined further: `(A, b) ∘ (A', b') = ((b' ? e : A) • A', b ∨ b')`.

    **Arguments:**

    - `combine`: an associative operator `(earlier, later) -> combined` on pytrees of arrays whose
      leading axis is time (as in `jax.lax.associative_scan`), or without that axis.

    **Returns:**

    An associative operator on `(element, begin)`; `begin` is a boolean array whose axes are the
    leading axes of the element's leaves.

    Source: *Recurrent Reinforcement Learning with Memoroids* (Morad et al., 2024), section 4.
    """

    def combine_or_reset(earlier, later):
        (earlier_element, earlier_begin), (later_element, later_begin) = earlier, later

        def unless_begun(otherwise):
            return jax.tree.map(
                lambda later, other: jnp.where(match_rank(later_begin, other), later, other),
                later_element,
                otherwise,
            )

        # What is not finite must not come into it: zero times it is no zero in the gradient.
        combined = combine(unless_begun(earlier_element), later_element)
        return unless_begun(combined), earlier_begin | later_begin

    return combine_or_reset


def associative(
    combine: Combine,
    elements: PyTree,
    begin: Bool[Array, " time"] | None = None,
    *,
    initial: PyTree = None,
    reverse: bool = False,
) -> PyTree:
    """All prefixes `e_1 • … • e_t` of an associative operator, parallel over time.

    **Arguments:**

    - `combine`: an associative operator `(earlier, later) -> combined`. It is given leaves with a
      leading time axis and must broadcast over it.
    - `elements`: pytree of arrays with a leading time axis.
    - `begin`: shape `[time]`; where true, everything before that element is discarded.
    - `initial`: one element without the time axis, combined in front of the first: the carry of
      an earlier call.
    - `reverse`: scan from the last element to the first; "earlier" then means later in time, and
      `begin` acts on the element that it marks before that element is combined.

    **Returns:**

    The prefixes, with the structure and shapes of `elements`.

    **Raises:**

    `ValueError` when there are no elements, `begin` does not have their time axis, or `initial` is
    no such element; `TypeError` when `begin` is not boolean.
    """
    length = check_steps("elements", elements)
    if begin is not None:
        begin = check_begin(begin, length)
    elements, begin, initial = vary_together(elements, begin, initial)
    if initial is not None:
        _check_first(initial, elements)
        # As an element of its own, not combined with the first: where that begins an episode, the
        # operator for borders discards it like any other.
        elements = jax.tree.map(lambda i, e: _prepend(i, e, reverse), initial, elements)
        if begin is not None:
            begin = _prepend(False, begin, reverse)
    if begin is None:
        out = jax.lax.associative_scan(combine, elements, reverse=reverse)
    else:
        out, _ = jax.lax.associative_scan(resettable(combine), (elements, begin), reverse=reverse)
    if initial is not None:
        # The first prefix is `initial` itself: a step that the caller does not have.
        out = jax.tree.map(lambda o: o[:-1] if reverse else o[1:], out)
    return out


def _check_first(initial: PyTree, elements: PyTree) -> None:
    one = jax.eval_shape(lambda tree: jax.tree.map(lambda x: x[0], tree), elements)
    pairs = zip(jax.tree.leaves(initial), jax.tree.leaves(one), strict=False)
    same = jax.tree.structure(initial) == jax.tree.structure(one)
    if not same or any(not broadcasts(jnp.shape(i), e.shape) for i, e in pairs):
        raise ValueError(
            f"`initial` (={described(initial)}) must be one element, like {described(one)}."
        )


def _prepend(first, rest: Array, reverse: bool) -> Array:
    dtype = jnp.result_type(first, rest)
    first, rest = jnp.asarray(first, dtype), rest.astype(dtype)
    first = broadcast_like(first, rest[:1])
    return jnp.concatenate([rest, first] if reverse else [first, rest])
