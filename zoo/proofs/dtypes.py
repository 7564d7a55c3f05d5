"""Whether a memory keeps the types of its numbers, and what is left of them in half precision."""

import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from zoo.memory import AbstractMemory
from zoo.proofs.forms import BATCH, jit
from zoo.proofs.losses import LEAST_SCALE, numbers
from zoo.proofs.promises import STEPS, draws, stepped
from zoo.proofs.report import Check

# A memory's own refusal names the argument and its dtype; an error of JAX names neither.
_IN_WORDS = re.compile(r"`[^`]+` \([^)]*bfloat16")
_REFUSED = "bfloat16 is refused in words"


def cast(tree: Any, dtype: Any) -> Any:
    """A pytree with its floating-point numbers in a precision; complex ones of at least 32 bits."""

    def of(p):
        if not eqx.is_inexact_array(p):
            return p
        to = jnp.result_type(dtype, jnp.complex64) if jnp.iscomplexobj(p) else dtype
        # In NumPy: JAX would compile a program for each shape.
        return jax.device_put(np.asarray(p).astype(to))

    return jax.tree.map(of, tree)


def carried(memory: AbstractMemory) -> list[Check]:
    """Whether what comes out of every form can go in again: shape, dtype and weakness of type.

    Only traced, in bfloat16: what widens float32 widens that as well. Where bfloat16 is refused
    or does not pass, float32 is looked at first, of which more can be said. In float64 the forms
    run, and what comes out of them is looked at.
    """
    narrow = _traced(memory, jnp.bfloat16)
    if narrow.passed and narrow.what != _REFUSED:
        return [narrow]
    return [_traced(memory, jnp.float32), narrow]


def _traced(memory: AbstractMemory, dtype: Any) -> Check:
    name = jnp.dtype(dtype).name
    memory = cast(memory, dtype)
    x = jax.ShapeDtypeStruct((memory.inputs,), dtype)
    xs = jax.ShapeDtypeStruct((2, memory.inputs), dtype)
    begin = jax.ShapeDtypeStruct((2,), bool)
    arrays, rest = eqx.partition(memory, eqx.is_array)

    def call(method, *arguments):
        form = lambda arrays, *arguments: getattr(eqx.combine(arrays, rest), method)(*arguments)  # noqa: E731
        return jax.eval_shape(form, arrays, *arguments)

    try:
        state = call("init_state")
        carry = (state, call("rtrl_init"))
        outs = {
            "step": call("step", state, x),
            "scan": call("scan", state, xs, begin),
            "rtrl_step": call("rtrl_step", carry, x),
            "rtrl_scan": call("rtrl_scan", carry, xs, begin),
        }
    except (TypeError, ValueError) as error:
        return _refused(name, error)
    starts = {"step": state, "scan": state, "rtrl_step": carry, "rtrl_scan": carry}
    changes, y = [], outs["step"][1]
    for form, (end, ys) in outs.items():
        change = changed(starts[form], end)
        if not change and (ys.dtype, ys.weak_type) != (y.dtype, y.weak_type):
            change = f"y: {_kind(ys)} instead of {_kind(y)}"
        changes += [f"{form}, {change}"] if change else []
    return kept(dtype, changes)


def kept(dtype: Any, changes: list[str]) -> Check:
    """The check that nothing is in `changes`: what each form changes of its carry."""
    what = f"{jnp.dtype(dtype).name}: forms that change a dtype"
    rule = "what comes out is of the dtype that went in: a second call compiles nothing new"
    if any("weakly typed" in change for change in changes):
        rule += ". Made of a number of Python, an array has no dtype of its own: give it one"
    return Check("dtypes", what, float(len(changes)), changes[0] if changes else "", 0.0, rule)


def _refused(name, error):
    message = " ".join(str(error).split())[:300]
    if name == "bfloat16" and isinstance(error, ValueError) and _IN_WORDS.match(message):
        return Check("dtypes", _REFUSED, 0.0, limit=0.0)
    if "complex does not accept" in message:
        message += " Join real and imaginary parts with `zoo.parts.to_complex`"
    return Check("dtypes", name, None, limit=0.0, rule=f"{type(error).__name__}: {message}")


def changed(start: Any, end: Any) -> str:
    """The first leaf of a carry that comes out as another kind of array."""
    start, end = (jax.tree_util.tree_leaves_with_path(tree) for tree in (start, end))
    if [path for path, _ in start] != [path for path, _ in end]:
        return "the carry's structure"
    for (path, one), (_, other) in zip(start, end, strict=True):
        if _kind(one) != _kind(other):
            return f"carry{jax.tree_util.keystr(path)}: {_kind(other)} after {_kind(one)}"
    return ""


def _kind(aval) -> str:
    weak = " (weakly typed)" if getattr(aval, "weak_type", False) else ""
    return f"{aval.dtype.name}{list(aval.shape)}{weak}"


def clocks(memory: AbstractMemory) -> list[Check]:
    """Whether what counts steps, whatever the inputs and parameters, counts in integers."""
    (moved, one, x), (_, two, _), _ = draws(memory)
    others = two, memory.init_state(), stepped(moved, one, x)[0]
    found = []
    for (path, a), b, start, after in zip(
        jax.tree_util.tree_leaves_with_path(one), *map(jax.tree.leaves, others), strict=True
    ):
        if not jnp.issubdtype(a.dtype, jnp.inexact):
            continue
        a, b, start, after = map(np.asarray, (a, b, start, after))
        # By as much at every step: an average of ones moves by itself too, and comes to an end.
        counts = np.allclose(a - start, STEPS * (after - a), rtol=1e-9, atol=0)
        if np.array_equal(a, b) and np.any(a != start) and counts:
            found.append(f"state{jax.tree_util.keystr(path)}")
    where = found[0] if found else ""
    rule = "what counts steps is an integer: in bfloat16 a float stops at 256"
    return [Check("dtypes", "floats that count steps", float(len(found)), where, 0.0, rule)]


@jit
def _scanned(memory, xs):
    return jax.vmap(lambda xs: memory.scan(memory.init_state(), xs))(xs)


def in_half_precision(memory: AbstractMemory) -> list[Check]:
    """How far a short scan in bfloat16 is from float32: all leaves together, and each in size.

    Rounding may change an order, as that of a DNC's free slots, and with it nearly all of one leaf,
    but neither most of all leaves nor how large one is: zeros are 1 from anything. How large is
    that of several sequences: in one of them a single number may be near zero by itself.
    """
    xs = np.random.default_rng(0).normal(size=(BATCH, STEPS, memory.inputs)).astype(np.float32)
    low, high = jnp.bfloat16, jnp.float32
    try:
        got = _scanned(cast(memory, low), cast(jax.device_put(xs), low))
    except (TypeError, ValueError) as error:
        return [_refused("bfloat16", error)]
    expected = cast(_scanned(cast(memory, high), cast(jax.device_put(xs), high)), high)
    apart, sizes = [], []
    for (path, e), g in zip(
        jax.tree_util.tree_leaves_with_path(expected), jax.tree.leaves(cast(got, high)), strict=True
    ):
        g, e = numbers(g), numbers(e)
        if e.size:
            # NaN where something is not finite, which is within no limit.
            off, scale = np.mean(np.abs(g - e)[0]), np.mean(np.abs(e)[0])
            apart.append(float(off / max(scale, LEAST_SCALE)))
            change = abs(np.max(np.abs(g)) - np.max(np.abs(e)))
            size = float(change / max(np.max(np.abs(e)), LEAST_SCALE))
            sizes.append((size if np.isfinite(size) else np.inf, jax.tree_util.keystr(path)))
    number, where = max(sizes)
    rule = "in bfloat16 states and outputs are finite, and not others altogether"
    return [
        Check("dtypes", "bfloat16 scan against float32", float(np.mean(apart)), "", 0.5, rule),
        Check("dtypes", "bfloat16 sizes against float32", number, where, 0.75, rule),
    ]
