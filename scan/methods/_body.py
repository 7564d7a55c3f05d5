"""What a program of the kernel does, in Pallas.

It follows a few channels through a chunk of time. The chip's memory answers late, so that the words
of the next steps are asked for while those of the present steps are used:

    registers   b₀ b₁ … b₁₅    step 0 uses b₀, and asks for b₁₆ in its place; step 1 uses b₁, …
"""

import math

import jax
import jax.numpy as jnp

from scan.methods._plan import Plan

_I32, _U32, _U64, _F32 = jnp.int32, jnp.uint32, jnp.uint64, jnp.float32


class _Lanes:
    """Reads and writes a program's channels of flat arrays, in the parts that Triton has."""

    def __init__(self, plan: Plan, channel):
        self._dtype = plan.dtype
        partly = plan.channels % plan.tuning.lanes
        self._inside = channel < plan.channels if partly else None

    def words(self, ref, at, valid=None):
        """Words, not yet looked at; any where not valid."""
        from jax.experimental.pallas import triton

        mask = self._mask(at, valid)
        if mask is None:
            return triton.load(ref.at[at])
        return triton.load(ref.at[at], mask=mask, other=0)

    def parts(self, words):
        """A number of one part, or its real and imaginary parts."""
        if self._dtype == "complex64":
            halves = words.astype(_U32), (words >> _U64(32)).astype(_U32)
            return tuple(jax.lax.bitcast_convert_type(half, _F32) for half in halves)
        return (words.astype(_F32) if words.dtype.itemsize == 2 else words,)

    def load(self, ref, at):
        """Numbers."""
        return self.parts(self.words(ref, at))

    def store(self, ref, at, number, valid=None):
        """Write where valid."""
        from jax.experimental.pallas import triton

        if self._dtype == "complex64":
            low, high = (jax.lax.bitcast_convert_type(x, _U32).astype(_U64) for x in number)
            word = low | (high << _U64(32))
        else:
            word = number[0].astype(ref.dtype)
        triton.store(ref.at[at], word, mask=self._mask(at, valid))

    def _mask(self, at, valid):
        if valid is None:
            return self._inside
        valid = jnp.broadcast_to(valid, at.shape)
        return valid if self._inside is None else valid & self._inside


def follow(plan: Plan, *refs):
    """The kernel: one program of it, given the flat arrays of words."""
    from jax.experimental import pallas as pl

    names = [x.name for x in plan.operands]
    given = dict(zip(names, refs[: len(names)], strict=True))
    out = refs[len(names) :]
    tuning, channels, last = plan.tuning, _I32(plan.channels), _I32(plan.time - 1)
    channel = pl.program_id(0).astype(_I32) * _I32(tuning.lanes) + jax.lax.iota(_I32, tuning.lanes)
    lanes = _Lanes(plan, channel)
    chunk = pl.program_id(1).astype(_I32)
    first = chunk * _I32(plan.chunk)
    end = jnp.minimum(first + _I32(plan.chunk), _I32(plan.time))
    place = {x.name: _place(channel, plan.features, x.features) for x in plan.operands}
    size = {x.name: _I32(math.prod(x.features)) for x in plan.operands}
    by_chunk = chunk * channels + channel

    def at_time(step):
        return last - step if plan.reverse else step

    def ask(step):
        """The words of a step."""
        t, valid = at_time(step), step < end
        found = {}
        for name in ("a", "b", "begin"):
            if name in given and (plan.varies or name != "a"):
                at = t * size[name] + place[name]
                found[name] = lanes.words(given[name], at, valid)
        if "h" in given:
            # An adjoint's loop goes the other way: the step before is the one it comes to next.
            # At the end of time there is none, and h0 takes its place.
            before = at_time(step + _I32(1))
            exists = valid & (step < last)
            found["h"] = lanes.words(given["h"], before * channels + channel, exists)
        return found

    constant = () if plan.varies else lanes.load(given["a"], place["a"])
    h0 = lanes.load(given["h0"], channel) if "h0" in given else ()
    zero = tuple(map(jnp.zeros_like, lanes.parts(jnp.zeros(tuning.lanes, out[0].dtype))))
    sums_a = plan.what == "adjoint" and plan.wants_a and not plan.varies
    if "start" in given:
        carry = (lanes.load(given["start"], by_chunk), *[zero] * sums_a)
    else:
        carry = ((jnp.ones_like(zero[0]), *zero[1:]), zero)  # the product and the end so far

    def advance(carry, step, found):
        valid = step < end
        a = lanes.parts(found["a"]) if plan.varies else constant
        b = lanes.parts(found["b"])
        begins = found["begin"] != 0 if "begin" in found else None

        def unless_begins(x):  # a selection: a NaN must not cross the border as NaN times zero
            return x if begins is None else tuple(jnp.where(begins, 0, part) for part in x)

        at = at_time(step) * channels + channel
        state, *others = carry
        if plan.what == "solve":
            h = _affine(a, unless_begins(state), b)
            lanes.store(out[0], at, h, valid)
            new = (h,)
        elif plan.what == "solve_summary":
            new = _times(a, unless_begins(state)), _affine(a, unless_begins(others[0]), b)
        elif plan.what == "adjoint_summary":
            through = _times(a, _plus(b, others[0]))
            new = unless_begins(_times(a, state)), unless_begins(through)
        else:
            g = _plus(b, state)
            lanes.store(out[0], at, g, valid)
            new = (unless_begins(_times(a, g)),)
            if plan.wants_a:
                kept = zip(h0, lanes.parts(found["h"]), strict=True)
                before = tuple(jnp.where(step == last, *both) for both in kept)
                d_a = _times(g, unless_begins(before))
                if plan.varies:
                    lanes.store(out[2], at, d_a, valid)
                else:
                    new = (*new, _plus(others[0], d_a))
        # Steps behind the end of a chunk leave all as it is.
        return jax.tree.map(lambda now, was: jnp.where(valid, now, was), new, carry)

    def advance_all(i, state):
        carry, coming = state
        step = first + i * _I32(tuning.steps)
        asked = []
        for ahead, found in enumerate(coming):
            carry = advance(carry, step + _I32(ahead), found)
            asked.append(ask(step + _I32(ahead + tuning.steps)))
        return carry, asked

    rounds = _I32(-(-plan.chunk // tuning.steps))
    coming = [ask(first + _I32(ahead)) for ahead in range(tuning.steps)]
    carry, _ = jax.lax.fori_loop(_I32(0), rounds, advance_all, (carry, coming))
    ends = {"solve": [], "adjoint": out[1 : 2 + sums_a]}.get(plan.what, out)
    for ref, number in zip(ends, carry if ends else (), strict=True):
        lanes.store(ref, by_chunk, number)


def _place(channel, features, shape):
    """Where a channel's value stands in an array whose shape broadcasts to the features."""
    if shape == features:
        return channel
    place, inner, stride = jnp.zeros_like(channel), 1, 1
    for size, own in zip(features[::-1], shape[::-1], strict=True):
        if own > 1:
            place = place + channel // _I32(inner) % _I32(size) * _I32(stride)
        inner, stride = inner * size, stride * own
    return place


def _plus(x, y):
    return tuple(map(jnp.add, x, y))


def _times(x, y):
    return _affine(x, y, None)


def _affine(a, h, b):
    """`a h + b`, in an order that keeps the products and sums to follow each other few."""
    if len(a) == 1:
        return (a[0] * h[0] if b is None else a[0] * h[0] + b[0],)
    (re, im), (x, y) = a, h
    if b is None:
        return re * x - im * y, re * y + im * x
    return (b[0] + re * x) - im * y, (b[1] + re * y) + im * x
