"""A function that stands in for another of the same values, until it is differentiated.

`jax.custom_jvp` would do, but JAX forgets its rule where it takes a loop's body apart for reverse
mode, and batches it wrongly inside of a platform's branch. A primitive is forgotten by nobody.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir


def stand_in(
    branches: dict[str, Callable[..., Any]],
    other: Callable[..., Any],
    *arguments: Any,
    result: Any,
    largest: Mapping[str, int] = MappingProxyType({}),
) -> Any:
    """Call the function of a platform, which may have no derivatives, with those of another.

    Only the function of the platform that a program is lowered for is traced.

    **Arguments:**

    - `branches`: a function for `"default"`, and for `"cpu"` and `"cuda"` if they have their own;
      none may close over arrays.
    - `other`: of the same values, made of what JAX can differentiate; nor may it.
    - `arguments`: of either, pytrees of arrays. The first leaf varies over all axes of a mesh that
      any of them varies over. `None` is one.
    - `result`: a pytree of arrays with the shapes and dtypes of what the functions return.
    - `largest`: how many numbers a result may have, batches included, for a platform's function to
      be called; that of `"default"` is in its place beyond.

    **Returns:**

    What the function returns.
    """
    leaves, tree = jax.tree.flatten(arguments)

    def of_leaves(function):
        return lambda *leaves: jax.tree.leaves(function(*jax.tree.unflatten(tree, leaves)))

    flat = _stand_in.bind(
        *leaves,
        branches=tuple(
            (platform, of_leaves(f), largest.get(platform)) for platform, f in branches.items()
        ),
        other=of_leaves(other),
        types=tuple((x.shape, x.dtype) for x in jax.tree.leaves(result)),
    )
    return jax.tree.unflatten(jax.tree.structure(result), flat)


def jvp_in(
    moving: list[int], function: Callable[..., Any], primals: Sequence, tangents: Sequence
) -> tuple[Any, Any]:
    """`jax.jvp` in some of a function's arguments.

    **Arguments:**

    - `moving`: the numbers of those.
    - `function`: of all arguments.
    - `primals`, `tangents`: of all arguments; tangents of others than `moving` are not looked at.

    **Returns:**

    The value and its tangent.
    """

    def of_moving(*moved):
        operands = list(primals)
        for i, x in zip(moving, moved, strict=True):
            operands[i] = x
        return function(*operands)

    return jax.jvp(of_moving, [primals[i] for i in moving], [tangents[i] for i in moving])


_stand_in = Primitive("stand_in")
_stand_in.multiple_results = True


@_stand_in.def_impl
def _apply(*operands, branches, other, types):
    return jax.lax.platform_dependent(*operands, **_fitting(branches, types))


@_stand_in.def_abstract_eval
def _types(*operands, branches, other, types):
    if jax.sharding.get_abstract_mesh().explicit_axes:
        # There how an array is split is a part of its type, which `other` tells.
        return [x.update(weak_type=False) for x in jax.make_jaxpr(other)(*operands).out_avals]
    return [operands[0].update(shape=s, dtype=d, weak_type=False) for s, d in types]


def _lowered_for(platform, *operands, branches, other, types):
    of = _fitting(branches, types)
    return of.get(platform, of["default"])(*operands)


def _fitting(branches, types):
    """Functions by platform, but for those that a result is too large for."""
    sizes = [math.prod(shape) for shape, _ in types]

    def fits(most):  # a size that is a symbol, as in an export for any batch, may be any
        return most is None or all(isinstance(n, int) and n <= most for n in sizes)

    return {platform: f for platform, f, most in branches if fits(most)}


def _differentiate(primals, tangents, *, branches, other, types):
    moving = [i for i, t in enumerate(tangents) if type(t) is not ad.Zero]
    return jvp_in(moving, other, primals, tangents)


def _transpose(cotangents, *operands, branches, other, types):
    linear = [i for i, x in enumerate(operands) if ad.is_undefined_primal(x)]

    def of_linear(*moved):
        given = list(operands)
        for i, x in zip(linear, moved, strict=True):
            given[i] = x
        return other(*given)

    transpose = jax.linear_transpose(of_linear, *(operands[i].aval for i in linear))
    found = iter(transpose(list(map(ad.instantiate_zeros, cotangents))))
    return [next(found) if ad.is_undefined_primal(x) else None for x in operands]


def _batch(operands, axes, *, branches, other, types):
    size = next(x.shape[d] for x, d in zip(operands, axes, strict=True) if d is not None)
    # Behind the time axis, where scans keep a batch: elsewhere they would transpose it.
    out = [min(1, len(shape)) for shape, _ in types]
    batched = partial(jax.vmap, in_axes=tuple(axes), out_axes=out, axis_size=size)
    found = _stand_in.bind(
        *operands,
        branches=tuple((platform, batched(f), most) for platform, f, most in branches),
        other=batched(other),
        types=tuple(
            ((*shape[:at], size, *shape[at:]), dtype)
            for (shape, dtype), at in zip(types, out, strict=True)
        ),
    )
    return found, out


ad.primitive_jvps[_stand_in] = _differentiate
ad.primitive_transposes[_stand_in] = _transpose
batching.primitive_batchers[_stand_in] = _batch
for _platform in ("default", "cpu", "cuda"):
    _rule = mlir.lower_fun(partial(_lowered_for, _platform), multiple_results=True)
    mlir.register_lowering(_stand_in, _rule, platform=None if _platform == "default" else _platform)
