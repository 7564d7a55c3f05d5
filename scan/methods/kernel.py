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
    plan = _plan("solve", a, b, begin, reverse, True)
    (h,) = _run(plan, tuning, a, b, begin, h0[None])
    return h


def adjoint(a, h, h0, begin, cotangent, *, reverse: bool, tuning: Tuning | None = None):
    """Cotangents of `a`, `b` and `h0` for a cotangent of `h`; see `scan.linear`.

    That of `a` is left out where `h` is `None`. Not to be differentiated.
    """
    plan = _plan("adjoint", a, cotangent, begin, not reverse, h is not None)
    # What flows back into the state is a recurrence too: through ← a (cotangent + through).
    start = jnp.zeros_like(h0)[None]
    of_h = () if h is None else (h, h0[None])
    d_b, (through,), *d_a = _run(plan, tuning, a, cotangent, begin, start, *of_h)
    if h is None:
        return None, d_b, through
    return sum_to(d_a[0] if plan.varies else d_a[0][0], a.shape), d_b, through


def _plan(what, a, b, begin, reverse, wants_a) -> Plan:
    """A plan without a layout."""
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
        tuning=Tuning(),
    )


def _run(plan, tuning, a, b, begin, *others):
    operands = a, b, *(() if begin is None else (begin,)), *others
    if tuning is None:
        return _recurrence.bind(*operands, plan=plan, laid=False)
    return _laid(replace(plan, tuning=tuning), *operands)


def _lay(plan, *operands):
    """Choose a layout last, when `jax.vmap` has made channels of its batch."""
    tuning = choose(plan.what, plan.dtype, plan.time, plan.channels)
    return _laid(replace(plan, tuning=tuning), *operands)


def _laid(plan, a, b, *others):
    """Run the kernel, or where time is cut the three of them, from one start to one end."""
    run = partial(_recurrence.bind, a, b, laid=True)
    if plan.tuning.chunks == 1:
        return run(*others, plan=plan)
    flags = 0 if plan.features_of_begin is None else 1
    begin, (start, *of_h) = others[:flags], others[flags:]
    products, ends = run(*begin, plan=replace(plan, what=f"{plan.what}_summary"))
    whole = replace(choose("solve", plan.dtype, len(products), plan.channels), chunks=1)
    over_chunks = _plan("solve", products, ends, None, False, True)
    (after,) = _run(over_chunks, whole, products, ends, None, start)
    starts = jnp.concatenate([start, after[:-1]])
    found = run(*begin, starts, *of_h, plan=plan)
    if plan.what == "solve":
        return found
    d_b, through, *d_a = found
    return [d_b, through[-1:], *(d if plan.varies else d.sum(0, keepdims=True) for d in d_a)]


_recurrence = Primitive("linear_recurrence")
_recurrence.multiple_results = True


@_recurrence.def_impl
def _apply(*operands, plan, laid):
    with jax.disable_jit(False):  # or it would come back here for ever
        return jax.jit(partial(_recurrence.bind, plan=plan, laid=laid))(*operands)


@_recurrence.def_abstract_eval
def _types(a, b, *others, plan, laid):
    if plan.time * plan.channels > LARGEST:
        size = plan.time * plan.channels
        raise ValueError(f"`b` (of {size} numbers) must have at most {LARGEST} for the kernel.")
    return [b.update(shape=shape) for shape in plan.outputs]


def _batch(operands, axes, *, plan, laid):
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
    out = _recurrence.bind(*operands, plan=batched, laid=laid)
    return out, [1] * len(out)


def _lower(rule, ctx, *operands, plan, laid):
    if laid:
        return rule(ctx, *operands, plan=plan)
    return mlir.lower_fun(partial(_lay, plan), multiple_results=True)(ctx, *operands)


batching.primitive_batchers[_recurrence] = _batch
mlir.register_lowering(_recurrence, partial(_lower, _lowering.interpreted))
mlir.register_lowering(_recurrence, partial(_lower, _lowering.lowered_for_cuda), platform="cuda")
