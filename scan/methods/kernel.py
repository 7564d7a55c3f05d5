"""An elementwise linear recurrence as one kernel: sequential in time, parallel over channels.

Every input is read once and every output written once, as a copy would, with the state in
registers. Where there are few channels, time is cut into chunks that run side by side:

    1. every chunk alone     a, b    ->  what it does to a state: a product and an end
    2. one after another     those   ->  the state that every chunk starts from
    3. every chunk again     a, b    ->  h

Three launches in a fixed order: no chunk waits for its neighbor's result in memory, as faster
schemes do whose sums depend on who comes first. Resuming is bitwise here.

Shapes: see `scan.methods.loop`. Written for NVIDIA GPUs; elsewhere it is interpreted, for tests.
"""

import math
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from scan.methods import _lowering
from scan.methods._broadcasting import sum_to
from scan.methods._plan import Plan, Tuning

TYPES = ("float16", "bfloat16", "float32", "float64", "complex64")
"""What the kernel computes with. Sums of halves are carried in float32."""
LARGEST = 2**31 - 1
"""How many numbers a drive may have, batches included: places are counted in 32 bits."""
# Registers of a thread for words on their way. Twice as many were no faster where time is cut, and
# compiled for twice as long.
_REGISTERS = 64
# From `_MANY` programs on registers alone keep the memory busy. Down to `_FEW` words are on their
# way through shared memory, in a layout that was within 13 % of the fastest and compiled in a
# quarter of its time. Of fewer programs, or fewer than `_SOME` whose numbers cannot go there, parts
# of a large chip are idle, and pieces of time pay, but no shorter ones than that.
_MANY, _SOME, _FEW = 1024, 256, 80
_SHARED = Tuning(steps=4, tiles=2, stages=8)
_SHORTEST_CHUNK = 64


def choose(what: str, dtype: str, time: int, channels: int) -> Tuning:
    """How a kernel is laid out over the chip, as measured on an H200.

    **Arguments:**

    - `what`: "solve" or "adjoint".
    - `dtype`: name of the number type.
    - `time`: steps.
    - `channels`: recurrences side by side.
    """
    size = jnp.dtype(dtype).itemsize
    programs = -(-channels // Tuning.lanes)
    rounds = time // (_SHARED.steps * _SHARED.tiles)
    # What is copied to shared memory on the way has 32 bits at the least.
    if _FEW <= programs < _MANY and size >= 4 and rounds > 1:
        return replace(_SHARED, stages=min(_SHARED.stages, rounds))
    words = max(1, size // 4)
    steps = min(16 // words, 1 << (time - 1).bit_length())
    arrays = 3 if what == "adjoint" else 2
    tiles = min(_REGISTERS // (arrays * words * steps), -(-time // steps))
    tuning = Tuning(steps=steps, tiles=max(1, tiles))
    if programs >= _SOME:
        return tuning
    return replace(tuning, chunks=max(1, min(_MANY // programs, time // _SHORTEST_CHUNK)))


def solve(a, b, h0, begin, *, reverse: bool, tuning: Tuning | None = None):
    """Solve `h_t = a_t ⊙ h_{t-1} + b_t`; see `scan.linear`. Not to be differentiated."""
    return _solve(_plan("solve", a, b, begin, reverse, True, tuning), a, b, h0, begin)


def adjoint(a, h, h0, begin, cotangent, *, reverse: bool, tuning: Tuning | None = None):
    """Cotangents of `a`, `b` and `h0` for a cotangent of `h`; see `scan.linear`.

    That of `a` is left out where `h` is `None`. Not to be differentiated.
    """
    plan = _plan("adjoint", a, cotangent, begin, not reverse, h is not None, tuning)
    return _adjoint(plan, a, h, h0, begin, cotangent)


def _plan(what, a, b, begin, reverse, wants_a, tuning) -> Plan:
    varies = a.ndim == b.ndim
    return Plan(
        what=what,
        time=b.shape[0],
        features=b.shape[1:],
        features_of_a=a.shape[1:] if varies else a.shape,
        features_of_begin=None if begin is None else begin.shape[1:],
        varies=varies,
        reverse=reverse,
        wants_a=wants_a,
        dtype=b.dtype.name,
        tuning=tuning or choose(what, b.dtype.name, b.shape[0], math.prod(b.shape[1:])),
    )


def _solve(plan, a, b, h0, begin):
    (h,) = _run(plan, a, b, begin, _starts(plan, a, b, h0, begin))
    return h


def _adjoint(plan, a, h, h0, begin, cotangent):
    # What flows back into the state is a recurrence too: through ← a (cotangent + through).
    starts = _starts(plan, a, cotangent, jnp.zeros_like(h0), begin)
    of_h = () if h is None else (h, h0[None])
    d_b, through, *d_a = _run(plan, a, cotangent, begin, starts, *of_h)
    if h is None:
        return None, d_b, through[-1]
    return sum_to(d_a[0] if plan.varies else d_a[0].sum(0), a.shape), d_b, through[-1]


def _starts(plan, a, b, start, begin):
    """What every chunk starts from, with a leading axis of chunks."""
    if plan.tuning.chunks == 1:
        return start[None]
    products, ends = _run(replace(plan, what=f"{plan.what}_summary"), a, b, begin)
    whole = replace(choose("solve", plan.dtype, len(products), plan.channels), chunks=1)
    over_chunks = _plan("solve", products, ends, None, False, True, whole)
    after = _solve(over_chunks, products, ends, start, None)
    return jnp.concatenate([start[None], after[:-1]])


def _run(plan, a, b, begin, *others):
    flags = () if begin is None else (begin,)
    return _recurrence.bind(a, b, *flags, *others, plan=plan)


_recurrence = Primitive("linear_recurrence")
_recurrence.multiple_results = True


@_recurrence.def_impl
def _apply(*operands, plan):
    with jax.disable_jit(False):  # or it would come back here for ever
        return jax.jit(partial(_recurrence.bind, plan=plan))(*operands)


@_recurrence.def_abstract_eval
def _types(a, b, *others, plan):
    if plan.time * plan.channels > LARGEST:
        size = plan.time * plan.channels
        raise ValueError(f"`b` (of {size} numbers) must have at most {LARGEST} for the kernel.")
    return [b.update(shape=shape) for shape in plan.outputs]


def _batch(operands, axes, *, plan):
    size = next(x.shape[d] for x, d in zip(operands, axes, strict=True) if d is not None)

    def moved(x, axis, operand):
        # The batch becomes the first of the features, behind time: rollouts are time-major.
        at = len(operand.leading)
        if axis is not None:
            return jnp.moveaxis(x, axis, at)
        x = jnp.expand_dims(x, at)
        shape = (*operand.leading, size, *plan.features)
        return x if operand.broadcasts else jnp.broadcast_to(x, shape)

    roles = plan.operands
    operands = [moved(x, d, role) for x, d, role in zip(operands, axes, roles, strict=True)]
    features = {
        role.name: (*x.shape[len(role.leading) :],) for x, role in zip(operands, roles, strict=True)
    }
    batched = replace(
        plan,
        features=(size, *plan.features),
        features_of_a=features["a"],
        features_of_begin=features.get("begin"),
    )
    out = _recurrence.bind(*operands, plan=batched)
    return out, [1] * len(out)


batching.primitive_batchers[_recurrence] = _batch
mlir.register_lowering(_recurrence, _lowering.interpreted)
mlir.register_lowering(_recurrence, _lowering.lowered_for_cuda, platform="cuda")
