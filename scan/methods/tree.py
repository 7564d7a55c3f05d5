"""An elementwise linear recurrence as a tree of depth log time, of the monoid of affine maps.

Shapes: see `scan.methods.loop`.
"""

import jax
import jax.numpy as jnp

from scan.methods._broadcasting import sum_to


def solve(a, b, h0, begin, *, reverse: bool):
    """Solve `h_t = a_t ⊙ h_{t-1} + b_t`; see `scan.linear`."""
    if a.ndim < b.ndim:
        a = a[None]
    if reverse:
        # Turned around by hand rather than by `associative_scan`, because `h0` enters at the end.
        a, b = a[::-1], b[::-1]
        begin = None if begin is None else begin[::-1]
    h = _prefixes(a, b, h0, begin)
    return h[::-1] if reverse else h


def adjoint(a, h, h0, begin, cotangent, *, reverse: bool):
    """Cotangents of `a`, `b` and `h0` for a cotangent of `h`; see `scan.linear`.

    That of `a` is left out where `h` is `None`.
    """
    constant = a.ndim < cotangent.ndim
    varying = jnp.broadcast_to(a[None], (len(cotangent), *a.shape)) if constant else a
    # g_t = cotangent_t + a_{t+1} g_{t+1}: the factor and the border sit one step later. The factor
    # that moves in at the end meets a state of zeros: any finite one would do.
    last = slice(0, 1) if reverse else slice(-1, None)
    later = None
    if begin is not None:
        later = _shift(begin, jnp.zeros_like(begin[last]), not reverse)
    g = solve(
        _shift(varying, jnp.zeros_like(varying[last]), not reverse),
        cotangent,
        jnp.zeros_like(h0),
        later,
        reverse=not reverse,
    )
    first = -1 if reverse else 0
    d_h0 = varying[first] * g[first]
    if begin is not None:
        d_h0 = jnp.where(begin[first], 0, d_h0)
    if h is None:
        return None, g, d_h0
    d_a = g * state_before(h, h0, begin, reverse=reverse)
    return sum_to(d_a.sum(0) if constant else d_a, a.shape), g, d_h0


def state_before(h, h0, begin, *, reverse: bool):
    """The state that every step starts from: the one before it, `h0`, or zeros at a border."""
    before = _shift(h, h0[None], reverse)
    return before if begin is None else jnp.where(begin, 0, before)


def _shift(x, fill, backward: bool):
    """`x` moved one step later in time (earlier if `backward`), with `fill` in the gap."""
    return jnp.concatenate([x[1:], fill] if backward else [fill, x[:-1]])


def _prefixes(a, b, h0, begin):
    def combine(earlier, later):
        (earlier_a, earlier_b, earlier_begin), (later_a, later_b, later_begin) = earlier, later
        factor, drive = later_a * earlier_a, later_a * earlier_b + later_b
        if later_begin is None:
            return factor, drive, None
        # A border discards what is earlier, and has to be remembered: see `scan.resettable`.
        factor, drive = (
            jnp.where(later_begin, alone, both)
            for alone, both in ((later_a, factor), (later_b, drive))
        )
        return factor, drive, earlier_begin | later_begin

    # The state carried in becomes a part of the first drive, so that no element is prepended: a
    # length that is a power of two stays one.
    carried = a[0] * h0
    if begin is not None:
        carried = jnp.where(begin[0], 0, carried)
    b = b.at[0].add(carried)
    return jax.lax.associative_scan(combine, (jnp.broadcast_to(a, b.shape), b, begin))[1]
