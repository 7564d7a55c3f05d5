"""Several of a kind side by side, or one: seeds, environments, sequences."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

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
