"""A value whose derivative is given by a rule, which is not forgotten.

`jax.custom_jvp` would do for one derivative. But where JAX takes a loop's body apart for reverse
mode, it puts the function in the place of its rule. A derivative that is taken later, a second one
or one in something else, is then that of the function: of a constant, where the value is handed in.
A primitive is forgotten by nobody.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, PyTree


def with_tangent(rule: Callable[..., PyTree], value: PyTree, *arguments: PyTree) -> PyTree:
    """Return `value`, as a function of `arguments`: its tangent is its own and that of a rule.

    **Arguments:**

    - `rule`: `(value, arguments, tangents) -> tangent of value`, called where any of the tangents
      is not zero. `tangents` has a list for each of the arguments, of its leaves' tangents, with
      `None` for those that are zero. May not close over arrays.
    - `value`: pytree of floating-point arrays. Time-major, if a rule's scans are to be fast where
      `jax.vmap` gives it a batch that it has not.
    - `arguments`: pytrees of arrays.

    **Returns:**

    `value`.
    """
    given = jax.tree.map(jnp.asarray, value)
    leaves, tree = jax.tree.flatten((given, arguments))
    structure = jax.tree.structure(given)
    flat = _with_tangent.bind(
        *leaves, rule=partial(_flat_rule, rule, tree), count=structure.num_leaves
    )
    return jax.tree.unflatten(structure, flat)


def _flat_rule(rule, tree, value, arguments, moving):
    value, arguments = jax.tree.unflatten(tree, [*value, *arguments])
    rest = iter(moving)
    tangents = [[next(rest) for _ in jax.tree.leaves(argument)] for argument in arguments]
    return jax.tree.leaves(rule(value, arguments, tangents))


# The operands are the leaves of (value, arguments), of which the first `count` are the value's.
_with_tangent = Primitive("with_tangent")
_with_tangent.multiple_results = True


@_with_tangent.def_impl
def _apply(*operands, rule, count):
    return _arrays(operands[:count])


@_with_tangent.def_abstract_eval
def _value(*operands, rule, count):
    return list(operands[:count])


def _arrays(operands: Sequence) -> list[Array]:
    """What a loop's body has as literals is no array of JAX."""
    return [x if isinstance(x, Array) else jnp.asarray(np.asarray(x)) for x in operands]


def _differentiate(primals: Sequence, tangents: Sequence, *, rule, count):
    # Of the value as a function of the arguments: second derivatives see by it what it is made of.
    value = _with_tangent.bind(*primals, rule=rule, count=count)
    own, moving = tangents[:count], [None if type(t) is ad.Zero else t for t in tangents[count:]]
    if all(t is None for t in moving):
        return value, own
    found = rule(value, _arrays(primals[count:]), moving)
    return value, list(map(ad.add_tangents, own, found))


def _batch(operands: Sequence, axes: Sequence, *, rule, count):
    size = next(x.shape[d] for x, d in zip(operands, axes, strict=True) if d is not None)
    operands, axes = spread_results(operands, axes, count, size)
    result, others = axes[:count], axes[count:]

    def batched(value, arguments, moving):
        of_moving = [None if t is None else d for t, d in zip(moving, others, strict=True)]
        one_by_one = jax.vmap(rule, (result, others, of_moving), result)
        return one_by_one(list(value), list(arguments), moving)

    return _with_tangent.bind(*operands, rule=batched, count=count), result


def spread_results(
    operands: Sequence[Any], axes: Sequence[int | None], count: int, size: int
) -> tuple[list, list]:
    """Give those operands a batch that the results have the types of.

    **Arguments:**

    - `operands`, `axes`: what a primitive's rule for batches is given.
    - `count`: how many of the first have the types of the results.
    - `size`: of the batch.

    **Returns:**

    Both, anew.
    """
    operands, axes = list(operands), list(axes)
    for i in range(count):
        if axes[i] is None:
            # Behind the time axis, where scans keep a batch: elsewhere they would transpose it.
            at = axes[i] = min(1, operands[i].ndim)
            shape = list(operands[i].shape)
            shape.insert(at, size)
            operands[i] = jnp.broadcast_to(jnp.expand_dims(operands[i], at), shape)
    return operands, axes


ad.primitive_jvps[_with_tangent] = _differentiate
batching.primitive_batchers[_with_tangent] = _batch
mlir.register_lowering(_with_tangent, mlir.lower_fun(_value, multiple_results=True))
