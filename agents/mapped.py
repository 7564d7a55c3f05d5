"""Several of a kind side by side, or one: seeds, environments, sequences."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def mapped(
    one: Callable[..., Any], in_axes: int | tuple[Any, ...] = 0, out_axes: Any = 0
) -> Callable[..., Any]:
    """Make a function of one into a function of several; `jax.vmap`, but one is left as it is.

    Over arrays with an axis of length 1 XLA's sums are up to 15 times slower on a CPU, and a
    choice under `jax.vmap` makes both of what it chooses from.

    **Arguments:**

    - `one`: its arguments are pytrees of arrays, and so is what it returns.
    - `in_axes`: the axis over several, of all arguments or of each, and there of all leaves or of
      each part; `None` where they share one.
    - `out_axes`: the same of what is returned.

    **Raises:**

    `ValueError` where the lengths of these axes differ.
    """

    def several(*arguments: Any) -> Any:
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(arguments)
        lengths = set()
        _each(lambda x, axis: lengths.add(x.shape[axis]), axes, arguments)
        if lengths != {1}:
            return jax.vmap(one, axes, out_axes)(*arguments)
        return _each(jnp.expand_dims, out_axes, one(*_each(jnp.squeeze, axes, arguments)))

    return several


def _each(change: Callable[[Any, int], Any], axes: Any, tree: Any) -> Any:
    """Change every leaf that has an axis over several; `axes` names it for each, or for parts."""

    def part(axis: int | None, leaves: Any) -> Any:
        return leaves if axis is None else jax.tree.map(lambda x: change(x, axis), leaves)

    return jax.tree.map(part, axes, tree, is_leaf=lambda axis: axis is None)
