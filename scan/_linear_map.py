"""The tangent of a solution, as a linear map that brings its transpose along.

    out     = solve(inputs)                       the caller's, to whom `with_tangent` gives a rule
    d_out   = linear_map(forward, transpose, …)   what that returns
    d_input = transpose(…)                        what JAX makes of that in reverse mode

A `jax.custom_vjp` forbids forward mode. With a rule for tangents that is written in ordinary
operations reverse mode is derived from those: it stores and does more than an adjoint that is
known. `jax.custom_derivatives.linear_call` joins the two, but has neither a rule for `vmap` nor one
for derivatives in what is not linear, hence this primitive. Nothing of the map is computed before
it is clear which direction is asked for, so that reverse mode stores the residuals only.
"""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import PyTree

from scan._stand_in import jvp_in, stand_in
from scan._varying import vary_together
from scan.tangents import spread_results


def linear_map(
    forward: Callable[[Any, Any, Any], Any],
    transpose: Callable[[Any, Any, Any], Any],
    out: PyTree,
    residuals: PyTree,
    tangents: PyTree,
) -> PyTree:
    """Apply a linear map whose transpose is given.

    **Arguments:**

    - `forward`: `(out, residuals, tangents) -> the tangent of out`; linear in `tangents`. Neither
      function may close over arrays.
    - `transpose`: `(out, residuals, cotangent of out) -> cotangents`, with the structure of
      `tangents`.
    - `out`: the value whose tangent this is: it has the map's result's structure and types.
      Time-major.
    - `residuals`: what else the map depends on, in any way that JAX can differentiate.
    - `tangents`: of the inputs; `None` in place of those that are zero.

    **Returns:**

    The tangent of `out`.
    """
    leaves, tree = jax.tree.flatten((out, residuals, tangents))
    counts = len(jax.tree.leaves(out)), len(jax.tree.leaves(tangents))
    flat = _linear_map.bind(
        *leaves,
        forward=partial(_flat_forward, forward, tree),
        transpose=partial(_flat_transpose, transpose, tree, counts[1]),
        counts=counts,
    )
    return jax.tree.unflatten(jax.tree.structure(out), flat)


def _flat_forward(forward, tree, *leaves):
    return jax.tree.leaves(forward(*jax.tree.unflatten(tree, leaves)))


def _flat_transpose(transpose, tree, count, known, cotangent):
    out, residuals, _ = jax.tree.unflatten(tree, [*known, *[0.0] * count])
    structure = jax.tree.structure(out)
    return jax.tree.leaves(transpose(out, residuals, jax.tree.unflatten(structure, cotangent)))


# The operands are the leaves of (out, residuals, tangents), and `counts` says how many of them are
# of the first and of the last. `forward` takes them all; `transpose` takes the first two and then
# the cotangents of the first.
_linear_map = Primitive("linear_map")
_linear_map.multiple_results = True


@_linear_map.def_impl
def _apply(*operands, forward, transpose, counts):
    return forward(*operands)


@_linear_map.def_abstract_eval
def _types(*operands, forward, transpose, counts):
    return list(operands[: counts[0]])


def _differentiate(primals, tangents, *, forward, transpose, counts):
    bind = partial(_linear_map.bind, forward=forward, transpose=transpose, counts=counts)
    split = len(primals) - counts[1]
    terms = []
    if any(type(t) is not ad.Zero for t in tangents[split:]):
        terms.append(bind(*primals[:split], *map(ad.instantiate_zeros, tangents[split:])))
    moving = [i for i in range(split) if type(tangents[i]) is not ad.Zero]
    if moving:  # second derivatives: the map itself is a function of the residuals
        terms.append(jvp_in(moving, forward, primals, tangents)[1])
    return bind(*primals), [reduce(jnp.add, parts) for parts in zip(*terms, strict=True)]


def _transpose(cotangents, *operands, forward, transpose, counts):
    split = len(operands) - counts[1]
    known, tangents = operands[:split], operands[split:]
    cotangents = vary_together(list(map(ad.instantiate_zeros, cotangents)))[0]
    asked = list(map(ad.is_undefined_primal, tangents))
    if jax.sharding.get_abstract_mesh().manual_axes:
        # Inside `jax.shard_map` a cotangent may vary over fewer devices than what it is made of.
        found = transpose(known, cotangents)
    else:
        # Traced when it is lowered: in a branch of another platform, never.
        types = [
            x.aval if undefined else jax.typeof(x)
            for x, undefined in zip(tangents, asked, strict=True)
        ]
        found = stand_in({"default": transpose}, transpose, known, cotangents, result=types)
    return [None] * split + [c if wanted else None for c, wanted in zip(found, asked, strict=True)]


def _batch(operands, axes, *, forward, transpose, counts):
    size = next(x.shape[d] for x, d in zip(operands, axes, strict=True) if d is not None)
    operands, axes = spread_results(operands, axes, counts[0], size)
    split = len(operands) - counts[1]
    result = axes[: counts[0]]

    def batched_transpose(known, cotangent):
        of_linear = axes[split:]
        # Inputs that are shared by the batch have the sum of its cotangents.
        found = jax.vmap(
            transpose, (tuple(axes[:split]), result), [d or 0 for d in of_linear], axis_size=size
        )(known, cotangent)
        return [c.sum(0) if d is None else c for c, d in zip(found, of_linear, strict=True)]

    batched_forward = jax.vmap(forward, tuple(axes), result, axis_size=size)
    out = _linear_map.bind(
        *operands, forward=batched_forward, transpose=batched_transpose, counts=counts
    )
    return out, result


ad.primitive_jvps[_linear_map] = _differentiate
ad.primitive_transposes[_linear_map] = _transpose
batching.primitive_batchers[_linear_map] = _batch
mlir.register_lowering(_linear_map, mlir.lower_fun(_apply, multiple_results=True))
