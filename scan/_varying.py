"""Arrays that differ from device to device, inside `jax.shard_map`.

There every array's type says over which axes of the mesh it varies. Operators on arrays cast what
does not vary, and the transpose of that cast sums gradients over the devices. But what a loop
carries, and what a rule for derivatives returns, must have one type from the beginning.
"""

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree


def vary_together(*trees: PyTree) -> tuple[Any, ...]:
    """Let all arrays vary over the devices that any of them varies over.

    Outside `jax.shard_map`, and where its check is off, they come back as they are.

    **Arguments:**

    - `trees`: pytrees of arrays.

    **Returns:**

    A tuple of the same pytrees.
    """
    axes = _axes_of(trees)
    return jax.tree.map(lambda x: _cast(x, axes), trees)


def vary_as_carried(step: Callable[[Any, Any], Any], carry: PyTree, xs: PyTree) -> PyTree:
    """The start of a loop, every array varying over the devices that a step's result varies over.

    **Arguments:**

    - `step`: `(carry, x) -> carry`. It is traced where arrays may vary at all, because it may close
      over some that do.
    - `carry`: the start.
    - `xs`: pytree of arrays with a leading time axis.

    **Returns:**

    `carry`, cast.
    """
    if not jax.sharding.get_abstract_mesh().manual_axes:
        return carry
    x = jax.eval_shape(lambda xs: jax.tree.map(lambda x: x[0], xs), xs)
    while True:  # at most once for every array and axis: what varies in one makes others vary
        after = jax.eval_shape(step, carry, x)
        cast = jax.tree.map(lambda c, a: _cast(c, _axes(a)), carry, after)
        if all(map(operator.is_, jax.tree.leaves(cast), jax.tree.leaves(carry))):
            return carry
        carry = cast


def broadcast_like(x: Any, like: Any) -> Any:
    """Broadcast an array to another's shape, split over a mesh's explicit axes as that one is.

    There how an array is split is a part of its type, and what is joined must have one type.
    """
    x = jnp.broadcast_to(x, like.shape)
    if jax.sharding.AxisType.Explicit not in jax.sharding.get_abstract_mesh().axis_types:
        return x
    return jax.sharding.reshard(x, jax.typeof(like).sharding.spec)


def _axes_of(tree: PyTree) -> frozenset:
    return frozenset().union(*(_axes(x) for x in jax.tree.leaves(tree)))


def _axes(x: Any) -> frozenset:
    # JAX 0.8 keeps the axes in `vma`, later versions in `mat`.
    kind = x if isinstance(x, jax.ShapeDtypeStruct) else jax.typeof(x)
    varying = getattr(getattr(kind, "manual_axis_type", None), "varying", None)
    return (getattr(kind, "vma", None) if varying is None else varying) or frozenset()


def _cast(x: Any, axes: frozenset) -> Any:
    missing = tuple(sorted(axes - _axes(x), key=str)) if axes else ()
    if not missing:
        return x
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(x, missing, to="varying")
    # JAX before 0.8.2.
    return jax.lax.pvary(x, missing)  # pyright: ignore[reportAttributeAccessIssue]
