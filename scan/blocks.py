"""`h_t = A_t h_{t-1} + b_t` with a small matrix for every unit."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from scan._checks import check_begin, check_steps
from scan._platform import loop_or_tree
from scan._varying import vary_together
from scan.associative import associative
from scan.linear import linear
from scan.precision import exact_matmul


def blocks(
    a: Float[Array, "time *units k k"],
    b: Float[Array, "time *units k"],
    h0: Float[Array, "*units k"],
    begin: Bool[Array, " time"] | None = None,
    *,
    reverse: bool = False,
) -> Float[Array, "time *units k"]:
    """Solve a linear recurrence whose matrices are block diagonal.

    A loop on the CPU, a tree of depth log time elsewhere; a tree costs a factor of k in work. Where
    k is 1 it is `scan.linear`.

    **Arguments:**

    - `a`: the blocks, shape `[time, *units, k, k]`.
    - `b`: the drive, shape `[time, *units, k]`.
    - `h0`: the state carried in.
    - `begin`: shape `[time]`; where true the state is replaced by zeros before `b_t` is added.
    - `reverse`: run from the last step to the first; `h0` is then the state after the last step.

    **Returns:**

    `h`, shape `[time, *units, k]`, in the promoted dtype of `a`, `b` and `h0`.

    **Raises:**

    `ValueError` for an empty time axis, shapes that do not fit and whole numbers, `TypeError` for a
    `begin` that is not boolean.
    """
    a, b, h0 = map(jnp.asarray, (a, b, h0))
    time = check_steps("b", b)
    if b.ndim < 2 or a.shape != (*b.shape, b.shape[-1]) or h0.shape != b.shape[1:]:
        raise ValueError(
            f"`a` (shape {a.shape}), `b` (shape {b.shape}) and `h0` (shape {h0.shape}) must have "
            "the shapes [time, *units, k, k], [time, *units, k] and [*units, k]."
        )
    dtype = jnp.result_type(a, b, h0)
    if not jnp.issubdtype(dtype, jnp.inexact):
        raise ValueError(f"`b` (dtype {b.dtype}) must be real or complex floating point.")
    if begin is not None:
        begin = check_begin(begin, time)
    if b.shape[-1] == 1:
        # Elementwise: with an adjoint of its own, and no matrices in the tree.
        return linear(a[..., 0, 0], b[..., 0], h0[..., 0], begin, reverse=reverse)[..., None]

    a, b, h0 = a.astype(dtype), b.astype(dtype), h0.astype(dtype)

    def in_a_loop(a, b, h0, begin):
        def step(h, inputs):
            a_t, b_t, begin_t = inputs
            if begin_t is not None:
                h = jnp.where(begin_t, 0, h)
            # A sum of products and not `@`, so that the step is elementwise and can be fused.
            h = b_t + jnp.sum(a_t * h[..., None, :], -1)
            return h, h

        return jax.lax.scan(step, h0, (a, b, begin), reverse=reverse)[1]

    def in_a_tree(a, b, h0, begin):
        # As the element in front of the first: affine maps, the identity's matrix and `h0`.
        first = jnp.eye(a.shape[-1], dtype=a.dtype), h0
        return associative(_combined, (a, b), begin, initial=first, reverse=reverse)[1]

    return loop_or_tree(in_a_loop, in_a_tree, *vary_together(a, b, h0, begin))


def _combined(earlier, later):
    (a, b), (later_a, later_b) = earlier, later
    return exact_matmul(later_a, a), exact_matmul(later_a, b[..., None])[..., 0] + later_b
