"""The two ways to solve an elementwise linear recurrence, and the adjoint of each.

Shapes, fixed by `scan.linear`: `b` and `h` are `[time, *features]`; `a` has the rank of `b` when it
varies in time and one axis less when it does not; `begin` is `None` or has the rank of `b`.
"""

from typing import Literal

import jax
import jax.numpy as jnp

Method = Literal["sequential", "associative"]


def solve(method: Method, a, b, h0, begin, *, reverse: bool):
    """Solve `h_t = a_t ⊙ h_{t-1} + b_t` by the named method; see `scan.linear`."""
    if method == "sequential":
        return _sequential(a, b, h0, begin, reverse)
    if a.ndim < b.ndim:
        a = a[None]
    if reverse:
        a, b = a[::-1], b[::-1]
        begin = None if begin is None else begin[::-1]
    h = _associative(a, b, h0, begin)
    return h[::-1] if reverse else h


def solve_adjoint(method: Method, a, h, h0, begin, cotangent, *, reverse: bool):
    """Cotangents of `a`, `b` and `h0` for a cotangent of `h`; see `scan.linear`."""
    if method == "sequential":
        return _sequential_adjoint(a, h, h0, begin, cotangent, reverse)
    constant = a.ndim < h.ndim
    varying = jnp.broadcast_to(a[None], (len(h), *a.shape)) if constant else a
    if begin is None:
        begin = jnp.zeros((len(h),) + (1,) * (h.ndim - 1), bool)
    # g_t = cotangent_t + a_{t+1} g_{t+1}: the factor and the border sit one step later.
    last = slice(0, 1) if reverse else slice(-1, None)
    g = solve(
        method,
        _shift(varying, varying[last], not reverse),
        cotangent,
        jnp.zeros_like(h0),
        _shift(begin, jnp.zeros_like(begin[last]), not reverse),
        reverse=not reverse,
    )
    before = jnp.where(begin, 0, _shift(h, h0[None], reverse))
    d_a = g * before
    first = -1 if reverse else 0
    d_h0 = jnp.where(begin[first], 0, varying[first] * g[first])
    return _sum_to(d_a.sum(0) if constant else d_a, a.shape), g, d_h0


def _shift(x, fill, backward: bool):
    """`x` moved one step later in time (earlier if `backward`), with `fill` in the gap."""
    return jnp.concatenate([x[1:], fill] if backward else [fill, x[:-1]])


def _sum_to(x, shape: tuple[int, ...]):
    """Undo broadcasting: sum `x` over the axes along which `shape` is 1."""
    axes = tuple(
        i for i, (have, want) in enumerate(zip(x.shape, shape, strict=True)) if have != want
    )
    return x.sum(axes, keepdims=True) if axes else x


def _sequential(a, b, h0, begin, reverse: bool):
    varies = a.ndim == b.ndim

    def step(h, inputs):
        b_t, a_t, begin_t = inputs
        if begin_t is not None:
            h = jnp.where(begin_t, 0, h)
        h = (a if a_t is None else a_t) * h + b_t
        return h, h

    _, h = jax.lax.scan(step, h0, (b, a if varies else None, begin), reverse=reverse)
    return h


def _sequential_adjoint(a, h, h0, begin, cotangent, reverse: bool):
    varies = a.ndim == h.ndim
    last = h.shape[0] - 1

    def step(carry, inputs):
        carried, d_a = carry
        t, ct_t, a_t, begin_t = inputs
        # h is read in place: shifting it by one step first would copy all of it.
        if reverse:
            before = jax.lax.dynamic_index_in_dim(h, jnp.minimum(t + 1, last), keepdims=False)
            before = jnp.where(t == last, h0, before)
        else:
            before = jax.lax.dynamic_index_in_dim(h, jnp.maximum(t - 1, 0), keepdims=False)
            before = jnp.where(t == 0, h0, before)
        g = ct_t + carried
        carried = (a if a_t is None else a_t) * g
        if begin_t is not None:
            before = jnp.where(begin_t, 0, before)
            carried = jnp.where(begin_t, 0, carried)
        d_a_t = g * before
        if varies:
            return (carried, None), (g, _sum_to(d_a_t, a.shape[1:]))
        return (carried, d_a + d_a_t), (g, None)

    zeros = jnp.zeros_like(h0)
    inputs = (jnp.arange(h.shape[0]), cotangent, a if varies else None, begin)
    (d_h0, d_a), (d_b, d_a_varying) = jax.lax.scan(
        step, (zeros, None if varies else zeros), inputs, reverse=not reverse
    )
    return d_a_varying if varies else _sum_to(d_a, a.shape), d_b, d_h0


def _associative(a, b, h0, begin):
    def combine(earlier, later):
        (a1, b1, begin1), (a2, b2, begin2) = earlier, later
        factor, drive = a2 * a1, a2 * b1 + b2
        if begin2 is None:
            return factor, drive, None
        return jnp.where(begin2, a2, factor), jnp.where(begin2, b2, drive), begin1 | begin2

    carried = a[0] * h0
    if begin is not None:
        carried = jnp.where(begin[0], 0, carried)
    b = b.at[0].add(carried)
    return jax.lax.associative_scan(combine, (jnp.broadcast_to(a, b.shape), b, begin))[1]
