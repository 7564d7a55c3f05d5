"""An elementwise linear recurrence one step after another.

Shapes, fixed by `scan.linear`: `b` and `h` are `[time, *features]`; `a` has the rank of `b` when it
varies in time and one axis less when it does not; `begin` is `None` or has the rank of `b`.
"""

import jax
import jax.numpy as jnp

from scan.methods._broadcasting import sum_to
from scan.precision import at_least_single


def solve(a, b, h0, begin, *, reverse: bool):
    """Solve `h_t = a_t ⊙ h_{t-1} + b_t`; see `scan.linear`."""
    varies = a.ndim == b.ndim

    def step(h, inputs):
        b_t, a_t, begin_t = inputs
        if begin_t is not None:
            h = jnp.where(begin_t, 0, h)
        h = (a if a_t is None else a_t) * h + b_t
        return h, h

    _, h = jax.lax.scan(step, h0, (b, a if varies else None, begin), reverse=reverse)
    return h


def adjoint(a, h, h0, begin, cotangent, *, reverse: bool):
    """Cotangents of `a`, `b` and `h0` for a cotangent of `h`; see `scan.linear`.

    That of `a` is left out where `h` is `None`.
    """
    varies = a.ndim == cotangent.ndim
    last = cotangent.shape[0] - 1

    def state_before(t):
        # h is read in place, because shifting it by one step first would copy all of it. The index
        # is clamped at the end where h0 is before, and what is read there is not used:
        #
        #       t          0     1     2     3    forward      0     1     2     3    reverse
        #     h[·]      h[0]* h[0]  h[1]  h[2]              h[1]  h[2]  h[3]  h[3]*
        #     before     h0   h[0]  h[1]  h[2]              h[1]  h[2]  h[3]   h0
        neighbor, end = (jnp.minimum(t + 1, last), last) if reverse else (jnp.maximum(t - 1, 0), 0)
        before = jax.lax.dynamic_index_in_dim(h, neighbor, keepdims=False)
        return jnp.where(t == end, h0, before)

    def step(carry, inputs):
        through, d_a = carry
        t, direct, a_t, begin_t = inputs
        g = direct + through
        through = (a if a_t is None else a_t) * g
        if begin_t is not None:  # a selection: a NaN must not cross the border as NaN times zero
            through = jnp.where(begin_t, 0, through)
        if h is None:
            return (through, None), (g, None)
        before = state_before(t)
        if begin_t is not None:
            before = jnp.where(begin_t, 0, before)
        d_a_t = g * before
        if varies:
            return (through, None), (g, sum_to(d_a_t, a.shape[1:]))
        # One sum over time is carried, so that [time, *features] need not be stored to be summed.
        return (through, d_a + d_a_t), (g, None)

    zeros = jnp.zeros_like(h0)
    inputs = (jnp.arange(last + 1), cotangent, a if varies else None, begin)
    # Halves stop growing at some hundreds of steps.
    total = jnp.zeros_like(h0, at_least_single(h0.dtype))
    start = (zeros, None if varies or h is None else total)
    (d_h0, d_a), (d_b, d_a_varying) = jax.lax.scan(step, start, inputs, reverse=not reverse)
    if h is None:
        return None, d_b, d_h0
    d_a = d_a_varying if d_a is None else sum_to(d_a, a.shape).astype(a.dtype)
    return d_a, d_b, d_h0
