"""Several of a kind side by side, or one: seeds, environments, sequences."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

Axes = int | None


def mapped(
    one: Callable[..., Any], in_axes: Axes | tuple[Axes, ...] = 0, out_axes: Any = 0
) -> Callable[..., Any]:
    """Make a function of one into a function of several; `jax.vmap`, but one is left as it is.

    Over arrays with an axis of length 1 XLA's sums are up to 15 times slower on a CPU, and a
    choice under `jax.vmap` makes both of what it chooses from.

    **Arguments:**

    - `one`: its arguments are pytrees of arrays, and so is what it returns.
    - `in_axes`: the axis over several, of all arguments or of each; `None` where they share one.
    - `out_axes`: the same of what is returned, or of its parts.

    **Raises:**

    `ValueError` where the lengths of these axes differ.
    """

    def several(*arguments: Any) -> Any:
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(arguments)
        lengths = {
            leaf.shape[axis]
            for axis, argument in zip(axes, arguments, strict=True)
            if axis is not None
            for leaf in jax.tree.leaves(argument)
        }
        if lengths != {1}:
            return jax.vmap(one, axes, out_axes)(*arguments)
        results = one(
            *(_each(jnp.squeeze, axis, x) for axis, x in zip(axes, arguments, strict=True))
        )
        return jax.tree.map(lambda axis, x: _each(jnp.expand_dims, axis, x), out_axes, results)

    return several


def _each(change: Callable[..., Any], axis: Axes, tree: Any) -> Any:
    return tree if axis is None else jax.tree.map(lambda x: change(x, axis=axis), tree)


@jax.custom_batching.custom_vmap
def for_all(flag: Array) -> Array:
    """Return `flag`; under `vmap`, the maximum over the batch, the same for all of it.

    A condition that differs between seeds side by side would become a selection, and both branches
    would run every time. Made the same for all of them it stays a condition.
    """
    return flag


@for_all.def_vmap
def _for_all_of_a_batch(axis_size, in_batched, flag):
    return (jnp.max(flag, 0) if in_batched[0] else flag), False


def side_by_side(tree: Any, envs: int) -> Any:
    """Return copies of a pytree's arrays for so many environments, along a leading axis."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (envs, *x.shape)), tree)
