"""Ways to solve a linear recurrence on a device with many cores, with one adjoint for all.

Each is a function `(a, b, h0) -> h` of `h_t = a_t ⊙ h_{t-1} + b_t`, time first, one `a` a step. All
are deterministic: the order of a sum is that of the program.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

Solve = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def unrolled(a, b, h0, *, steps: int):
    """A loop over time whose body takes several steps."""

    def step(h, inputs):
        a_t, b_t = inputs
        h = a_t * h + b_t
        return h, h

    return jax.lax.scan(step, h0, (a, b), unroll=min(steps, len(b)))[1]


def tree(a, b, h0):
    """A tree of depth log time, of the products of affine maps."""
    b = b.at[0].add(a[0] * h0)
    return jax.lax.associative_scan(after, (a, b))[1]


def in_chunks(a, b, h0, *, steps: int):
    """Two passes over chunks side by side, each of which a loop goes through, and a tree between.

    The first pass keeps what a chunk does to a state, a product and a sum, and the second starts
    each chunk where the one before ends. So `a` and `b` are read twice and `h` is written once.
    """
    steps = min(steps, len(b))
    if len(b) % steps:
        raise ValueError(f"`steps` (={steps}) must divide the number of steps of time ({len(b)}).")
    # [step of a chunk, chunk, features]: a loop's slices are then whole rows of memory.
    a, b = (jnp.moveaxis(x.reshape(-1, steps, *x.shape[1:]), 1, 0) for x in (a, b))

    def together(whole, one):
        return after(whole, one), None

    neutral = jnp.ones_like(a[0]), jnp.zeros_like(b[0])
    products, sums = jax.lax.scan(together, neutral, (a, b))[0]
    ends = tree(products, sums, h0)
    starts = jnp.concatenate([h0[None], ends[:-1]])
    h = unrolled(a, b, starts, steps=1)
    return jnp.moveaxis(h, 0, 1).reshape(-1, *h.shape[2:])


def after(earlier, later):
    """The affine map of one step, or several, after that of others."""
    (a1, b1), (a2, b2) = earlier, later
    return a1 * a2, a2 * b1 + b2


def with_adjoint(solve: Solve) -> Solve:
    """Give a way to solve the recurrence the gradient that solves it backwards in the same way."""

    @jax.custom_vjp
    def run(a, b, h0):
        return solve(a, b, h0)

    def forward(a, b, h0):
        h = solve(a, b, h0)
        return h, (a, h, h0)

    def backward(kept, cotangent):
        a, h, h0 = kept
        # g_t = cotangent_t + a_{t+1} g_{t+1}; the last factor meets zeros.
        factor = jnp.concatenate([a[1:], a[-1:]])[::-1]
        g = solve(factor, cotangent[::-1], jnp.zeros_like(h0))[::-1]
        before = jnp.concatenate([h0[None], h[:-1]])
        return g * before, g, a[0] * g[0]

    run.defvjp(forward, backward)
    return run


def alternatives(unrolls: tuple[int, ...], chunks: tuple[int, ...]) -> dict[str, Solve]:
    """By name: loops of so many steps at once, the tree, and chunks of so many steps."""
    loops = {f"lax.scan, unroll {n}": partial(unrolled, steps=n) for n in unrolls}
    blocks = {f"chunks of {n}, two passes": partial(in_chunks, steps=n) for n in chunks}
    return {name: with_adjoint(f) for name, f in (loops | {"tree": tree} | blocks).items()}
