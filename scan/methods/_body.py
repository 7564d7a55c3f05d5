"""What a program of the kernel does, in Pallas.

It follows a few channels through a chunk of time. The chip's memory answers late, so that the words
of some steps are on their way while those before them are used. They come in tiles of a few steps,
and not step by step, because Triton's time to compile grows with the third power of the number of
its loads. Each thread has a column of a tile, so that taking a row out of it, or putting rows
together, costs nothing: the row of a register is known when it is compiled.

Tiles are on their way to one of two places:

    registers        a₀ … a₇  |  a₈ … a₁₅  |  a₁₆ … a₂₃    each is asked for again as soon as it is
                     used. A tile's place in the loop is its own: a value that moved on to
                     another's would have to be there first.
    shared memory    The loop asks for what it uses. Triton moves that some rounds ahead, as copies
                     that need no registers: a single warp has enough of them under way.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp

from scan.methods._plan import Plan

_I32, _U32, _U64, _F32 = jnp.int32, jnp.uint32, jnp.uint64, jnp.float32


class _Lanes:
    """Reads and writes a program's channels of flat arrays, in the parts that Triton has."""

    def __init__(self, plan: Plan, channel, interpreted: bool):
        self._interpreted = interpreted
        self._dtype = plan.dtype
        self._inside = channel < plan.channels if plan.channels % plan.tuning.lanes else None

    def words(self, ref, at, valid=None):
        """Words, not yet looked at; any where not valid."""
        from jax.experimental.pallas import triton

        mask = self._mask(at, valid)
        if mask is None:
            return triton.load(ref.at[at])
        return triton.load(ref.at[at], mask=mask, other=0)

    def row(self, tile, step: int):
        """The words of one step of a tile."""
        if jnp.issubdtype(tile.dtype, jnp.floating):
            bits = jax.lax.bitcast_convert_type(tile, f"uint{8 * tile.dtype.itemsize}")
            return jax.lax.bitcast_convert_type(self.row(bits, step), tile.dtype)
        alone = jnp.where(self._rows(tile) == step, tile, jnp.zeros_like(tile))
        return jnp.sum(alone, axis=0, dtype=tile.dtype)

    def _rows(self, tile):
        return jax.lax.iota(_I32, tile.shape[0])[:, None]

    def parts(self, words):
        """A number of one part, or its real and imaginary parts."""
        if self._dtype == "complex64":
            halves = words.astype(_U32), (words >> _U64(32)).astype(_U32)
            return tuple(jax.lax.bitcast_convert_type(half, _F32) for half in halves)
        return (words.astype(_F32) if words.dtype.itemsize == 2 else words,)

    def load(self, ref, at):
        """Numbers."""
        return self.parts(self.words(ref, at))

    def store(self, ref, at, number):
        """Write."""
        self._write(ref, at, self._packed(ref, number), None)

    def store_rows(self, ref, at, numbers, valid):
        """Write a number for each step of a tile, where valid."""
        row = self._rows(at)
        tile = self._packed(ref, numbers[0])[None]
        for step, number in enumerate(numbers[1:], 1):
            tile = jnp.where(row == step, self._packed(ref, number)[None], tile)
        self._write(ref, at, tile, valid)

    def _packed(self, ref, number):
        if self._dtype != "complex64":
            return number[0].astype(ref.dtype)
        low, high = (jax.lax.bitcast_convert_type(x, _U32).astype(_U64) for x in number)
        return low | (high << _U64(32))

    def _write(self, ref, at, words, valid):
        """At a step of all lanes, or at all steps of a tile."""
        from jax.experimental.pallas import triton

        mask = self._mask(at, valid)
        if self._interpreted and mask is not None:
            # Where the mask is false, what stood there is written again, and another lane may
            # write there too. It goes behind the end, where nothing is written.
            at = jnp.where(mask, at, _I32(ref.shape[0]))
        triton.store(ref.at[at], words, mask=mask)

    def _mask(self, at, valid):
        if self._inside is not None:
            inside = jnp.broadcast_to(self._inside, at.shape)
            valid = inside if valid is None else valid & inside
        return None if valid is None else jnp.broadcast_to(valid, at.shape)


def follow(plan: Plan, interpreted: bool, *refs):
    """The kernel: one program of it, given the flat arrays of words."""
    from jax.experimental import pallas as pl

    names = [x.name for x in plan.operands]
    given = dict(zip(names, refs[: len(names)], strict=True))
    out = refs[len(names) :]
    tuning, channels, last = plan.tuning, _I32(plan.channels), _I32(plan.time - 1)
    # The minimum changes nothing. But Triton no longer knows on which borders lanes begin, and so
    # does not give a thread several of them, which would leave it less than a column.
    base = jnp.minimum(pl.program_id(0).astype(_I32) * _I32(tuning.lanes), channels | _I32(1))
    channel = base + jax.lax.iota(_I32, tuning.lanes)
    lanes = _Lanes(plan, channel, interpreted)
    chunk = pl.program_id(1).astype(_I32)
    first = chunk * _I32(plan.chunk)
    end = jnp.minimum(first + _I32(plan.chunk), _I32(plan.time))
    place = {x.name: _place(channel, plan.features, x.features) for x in plan.operands}
    size = {x.name: _I32(math.prod(x.features)) for x in plan.operands}
    by_chunk = chunk * channels + channel
    rows = jax.lax.iota(_I32, tuning.steps)[:, None]
    # Where tiles fill the chunks and those the time, all of a tile is valid or nothing.
    full = plan.time == tuning.chunks * plan.chunk and plan.chunk % tuning.steps == 0
    in_a_round = _I32(tuning.tiles * tuning.steps)
    # and where rounds fill the chunks, all tiles are, but those asked for at the end.
    always = full and plan.chunk % (tuning.tiles * tuning.steps) == 0

    def at_time(step):
        return last - step if plan.reverse else step

    tiled = ("a", "b") if tuning.stages > 1 else ("a", "b", "begin")

    def ask(step):
        """The words of a tile."""
        steps = step + rows
        valid = step < end if full else steps < end
        found = {}
        for name in tiled:
            if name in given and (plan.varies or name != "a"):
                at = at_time(steps) * size[name] + place[name][None]
                found[name] = lanes.words(given[name], at, valid)
        if "h" in given:
            # An adjoint's loop goes the other way: the step before is the one it comes to next.
            # At the end of time there is none, and h0 takes its place.
            before = at_time(steps + _I32(1))
            exists = valid & (steps < last)
            found["h"] = lanes.words(given["h"], before * channels + channel[None], exists)
        return found

    def ask_flags(step):
        """Where episodes begin in a round, if they do."""
        if "begin" not in given:
            return None
        steps = step + jax.lax.iota(_I32, tuning.tiles * tuning.steps)[:, None]
        at = at_time(steps) * size["begin"] + place["begin"][None]
        return lanes.words(given["begin"], at, steps < end)

    constant = () if plan.varies else lanes.load(given["a"], place["a"])
    h0 = lanes.load(given["h0"], channel) if "h0" in given else ()
    zero = tuple(map(jnp.zeros_like, lanes.parts(jnp.zeros(tuning.lanes, out[0].dtype))))
    sums_a = plan.what == "adjoint" and plan.wants_a and not plan.varies
    if "start" in given:
        carry = (lanes.load(given["start"], by_chunk), *[zero] * sums_a)
    else:
        carry = ((jnp.ones_like(zero[0]), *zero[1:]), zero)  # the product and the end so far

    def advance(carry, step, found):
        """The state after a step, and what is written of it."""
        a = lanes.parts(found["a"]) if plan.varies else constant
        b = lanes.parts(found["b"])
        begins = found["begin"] != 0 if "begin" in found else None

        def unless_begins(x):  # a selection: a NaN must not cross the border as NaN times zero
            return x if begins is None else tuple(jnp.where(begins, 0, part) for part in x)

        state, *others = carry
        if plan.what == "solve":
            h = _affine(a, unless_begins(state), b)
            return (h,), (h,)
        if plan.what == "solve_summary":
            return (
                _times(a, unless_begins(state)),
                _affine(a, unless_begins(others[0]), b),
            ), ()
        if plan.what == "adjoint_summary":
            through = _times(a, _plus(b, others[0]))
            return (unless_begins(_times(a, state)), unless_begins(through)), ()
        g = _plus(b, state)
        new = (unless_begins(_times(a, g)),)
        if not plan.wants_a:
            return new, (g,)
        kept = zip(h0, lanes.parts(found["h"]), strict=True)
        before = tuple(jnp.where(step == last, *both) for both in kept)
        d_a = _times(g, unless_begins(before))
        return (new, (g, d_a)) if plan.varies else ((*new, _plus(others[0], d_a)), (g,))

    written = {"solve": out[:1], "adjoint": (out[0], *out[2 : 2 + plan.varies])}.get(plan.what, ())

    def advance_tile(carry, step, tile, begins=None, offset=0):
        numbers = []
        for row in range(tuning.steps):
            now = step + _I32(row)
            found = {name: lanes.row(words, row) for name, words in tile.items()}
            if begins is not None:
                found["begin"] = lanes.row(begins, offset + row)
            new, wrote = advance(carry, now, found)
            if not always:  # steps behind the end of a chunk leave all as it is
                new = jax.tree.map(partial(jnp.where, now < end), new, carry)
            carry = new
            numbers.append(wrote)
        steps = step + rows
        at = at_time(steps) * channels + channel[None]
        valid = None if always else step < end if full else steps < end
        for ref, of_steps in zip(written, zip(*numbers, strict=True), strict=True):
            lanes.store_rows(ref, at, of_steps, valid)
        return carry

    def through_registers(i, state):
        carry, tiles = state
        of_round, asked = first + i * in_a_round, []
        for number, tile in enumerate(tiles):
            step = of_round + _I32(number * tuning.steps)
            carry = advance_tile(carry, step, tile)
            asked.append(ask(step + in_a_round))
        return carry, asked

    def through_shared_memory(i, state):
        carry, begins = state
        of_round = first + i * in_a_round
        steps = [of_round + _I32(number * tuning.steps) for number in range(tuning.tiles)]
        tiles = [ask(step) for step in steps]
        # Flags are too small to be copied so, and few enough to be near when they are asked for.
        later = ask_flags(of_round + in_a_round)
        for number, (step, tile) in enumerate(zip(steps, tiles, strict=True)):
            carry = advance_tile(carry, step, tile, begins, number * tuning.steps)
        return carry, later

    rounds = _I32(-(-plan.chunk // (tuning.tiles * tuning.steps)))
    if tuning.stages > 1:
        follow_round, coming = through_shared_memory, ask_flags(first)
    else:
        starts = [first + _I32(number * tuning.steps) for number in range(tuning.tiles)]
        follow_round, coming = through_registers, [ask(step) for step in starts]
    carry, _ = jax.lax.fori_loop(_I32(0), rounds, follow_round, (carry, coming))
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
