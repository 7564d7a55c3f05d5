"""What a memory promises before anything is derived from it: constants, structure, dtypes."""

import re
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from scan.trees import described
from zoo.kinds import (
    AbstractDenseCell,
    AbstractLinearCell,
    AbstractTimeInvariantCell,
    AbstractTwoAxisCell,
)
from zoo.kinds.monoid import AbstractMonoidCell
from zoo.memory import AbstractMemory
from zoo.proofs.forms import BATCH, jit, perturbed
from zoo.proofs.loop import plain_loop, plain_step
from zoo.proofs.losses import LEAST_SCALE, difference, numbers
from zoo.proofs.probes import leaks, not_holomorphic
from zoo.proofs.report import Check
from zoo.stack import cells

_STEPS = 5
_DRAWS = 3
# A memory's own refusal names the argument and its dtype; an error of JAX names neither.
_IN_WORDS = re.compile(r"`[^`]+` \([^)]*bfloat16")
_LINEAR = (AbstractLinearCell, AbstractTimeInvariantCell, AbstractTwoAxisCell)


@jit
def reached(memory: AbstractMemory, xs: Any) -> Any:
    """The state after a few inputs."""
    states, _ = plain_loop(memory, memory.init_state(), xs, jnp.zeros(len(xs), bool))
    return jax.tree.map(lambda h: h[-1], states)


@jit
def _stepped(memory: AbstractMemory, state: Any, x: Any) -> Any:
    return memory.step(state, x)


def draws(memory: AbstractMemory) -> Iterator[tuple[Any, Any, Any]]:
    """Parameters, a state that they lead to, and an input; all random."""
    for seed in range(_DRAWS):
        xs = np.random.default_rng(seed).normal(size=(_STEPS + 1, memory.inputs))
        moved = perturbed(memory, seed)
        yield moved, reached(moved, xs[:-1]), jax.device_put(xs[-1])


@jit
def _slopes(memory):
    """The derivative of all of the first state in the parameters."""
    parameters, rest = eqx.partition(memory, eqx.is_inexact_array)

    def initial(parameters):
        state = eqx.combine(parameters, rest).init_state()
        return [h for h in jax.tree.leaves(state) if jnp.issubdtype(h.dtype, jnp.inexact)]

    start, pullback = jax.vjp(initial, parameters)
    return pullback(jax.tree.map(jnp.ones_like, start))[0]


@jit
def _begun(memory):
    """The first state, with numbers in the place of what is not finite, as a stabilizer may be."""
    finite = lambda h: jnp.nan_to_num(h) if eqx.is_inexact_array(h) else h  # noqa: E731
    return jax.tree.map(finite, memory.init_state())


def shapes(memory: AbstractMemory) -> list[Check]:
    """What a step returns that is not what it says, for which nothing else could be checked."""
    for path, cell in cells(memory):  # first: a readout of another state says less
        state, x = jax.eval_shape(cell.init_state), jax.ShapeDtypeStruct((cell.inputs,), float)
        was, now = described(state), described(jax.eval_shape(cell.update, state, x))
        if jax.tree.flatten(was) != jax.tree.flatten(now):
            rule = f"`update` returns a state like that of `init_state`, {was}, and not {now}"
            return [Check("shapes", "of an update", None, rule=f"{rule}{_of(path)}")]
    state, x = jax.eval_shape(memory.init_state), jax.ShapeDtypeStruct((memory.inputs,), float)
    # Not `step`, which refuses outputs of another shape in words about several memories.
    after, y = jax.eval_shape(lambda *given: plain_step(memory, *given), state, x)
    found = []
    if y.shape != (memory.outputs,) or not jnp.issubdtype(y.dtype, jnp.floating):
        found.append(
            f"`step` returns real outputs of shape ({memory.outputs},), as `outputs` says, and not "
            f"{described(y)}"
        )
    was, now = described(state), described(after)
    if jax.tree.flatten(was) != jax.tree.flatten(now):
        found.append(f"`step` returns a state like that of `init_state`, {was}, and not {now}")
    if found:
        return [Check("shapes", "of a step", None, rule=rule) for rule in found]
    for moved, reached_state, last in draws(memory):
        for h in jax.tree.leaves((reached_state, _stepped(moved, reached_state, last))):
            if jnp.issubdtype(h.dtype, jnp.inexact) and not np.isfinite(np.asarray(h)).all():
                return [Check("values", "after random inputs", None, rule="states and outputs are "
                              "finite at random parameters near the first")]  # fmt: skip
    return []


def constants(memory: AbstractMemory) -> list[Check]:
    """Whether the state at an episode's beginning is a constant, and one that the kind allows."""
    rule = "`init_state()` is a constant, not a function of parameters"
    # A `stop_gradient` hides what depends on them from the derivative.
    number, where = difference(_begun(perturbed(memory)), _begun(memory))
    where = f".init_state(){where}" if number else ""
    out = [
        Check(
            "constants",
            "derivative of init_state in the parameters",
            *_largest(_slopes(memory)),
            limit=0.0,
            rule=rule,
        ),
        Check("constants", "init_state at other parameters", number, where, 0.0, rule),
    ]
    for path, cell in cells(memory):
        if isinstance(cell, _LINEAR):
            number, where = _largest(cell.init_state())
            out.append(
                Check(
                    "constants",
                    "init_state of a linear cell",
                    number,
                    limit=0.0,
                    where=f"{path}.init_state(){where}" if number else "",
                    rule="the state of a linear cell begins as zeros: its scan resets to them",
                )
            )
        if isinstance(cell, AbstractMonoidCell):
            out += _monoid(path, cell)
    return out


def _largest(tree: Any) -> tuple[float, str]:
    """The largest magnitude in a pytree, and the path of its leaf where it is not 0."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    sizes = [(float(np.max(np.abs(np.asarray(h)), initial=0)), path) for path, h in leaves]
    size, path = max(sizes, key=lambda entry: entry[0], default=(0.0, ()))
    return size, jax.tree_util.keystr(path) if size else ""


@jit
def _products(cell, state, x):
    neutral, one, two, three = cell.init_state(), *map(cell.lift, (x, -2 * x, x[::-1]))
    # Elements as well as states: those that are reached from zeros may all be zeros.
    identity = [
        (product, element)
        for element in (state, one)
        for product in (cell.combine(neutral, element), cell.combine(element, neutral))
    ]
    associative = [
        (
            cell.combine(cell.combine(first, one), two),
            cell.combine(first, cell.combine(one, two)),
        )
        for first in (state, three)
    ]
    return identity, associative


def _monoid(path: str, cell: AbstractMonoidCell) -> list[Check]:
    identity, associative = (0.0, ""), (0.0, "")
    for moved, state, x in draws(cell):
        as_they_were, of_three = _products(moved, state, x)
        identity = max(identity, *(difference(*pair) for pair in as_they_were))
        associative = max(associative, *(difference(*pair) for pair in of_three))
    return [
        Check("constants", "init_state as the neutral element", *identity,
              rule=f"`combine` of `init_state()` and an element is the element{_of(path)}"),
        Check("monoid", "(a b) c against a (b c)", *associative,
              rule=f"`combine` is associative, at every value of the parameters{_of(path)}"),
    ]  # fmt: skip


def _of(path: str) -> str:
    return f" in `{path}`" if path else ""


def structure(memory: AbstractMemory) -> list[Check]:
    """Whether entries depend on each other only where the structure of each cell says so."""
    out = []
    for path, cell in cells(memory):
        kind = type(cell.structure).__name__
        probed = [leak for draw in draws(cell) for leak in leaks(*draw)]
        if probed:
            worst = max(probed, key=lambda leak: leak.size)
            where = f"{path}{worst.where}" if worst.size > 1e-9 else ""
            rule = f"in rtrl.{kind}, {worst.said}"
            if isinstance(cell, AbstractDenseCell):
                rule += ", where all products with recurrent matrices go through `recurrent`"
            what = f"derivatives outside of rtrl.{kind}{_of(path)}"
            out.append(Check("structure", what, worst.size, where, rule=rule))
        turned = [leak for draw in draws(cell) for leak in not_holomorphic(*draw)]
        if turned:
            worst = max(turned, key=lambda leak: leak.size)
            where = f"{path}{worst.where}" if worst.size > 1e-9 else ""
            out.append(
                Check("holomorphy", f"Cauchy and Riemann's equations{_of(path)}", worst.size,
                      where=where, rule=worst.said)
            )  # fmt: skip
    return out


def cast(tree: Any, dtype: Any) -> Any:
    """A pytree with its floating-point numbers in a precision; complex ones of at least 32 bits."""

    def of(p):
        if not eqx.is_inexact_array(p):
            return p
        to = jnp.result_type(dtype, jnp.complex64) if jnp.iscomplexobj(p) else dtype
        # In NumPy: JAX would compile a program for each shape.
        return jax.device_put(np.asarray(p).astype(to))

    return jax.tree.map(of, tree)


def dtypes(memory: AbstractMemory, dtype: Any) -> list[Check]:
    """Whether what comes out of every form can go in again: shape, dtype and weakness of type.

    Only traced. In float64 the forms run, and what comes out of them is looked at.
    """
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
        return [_refused(name, error)]
    starts = {"step": state, "scan": state, "rtrl_step": carry, "rtrl_scan": carry}
    changes, y = [], outs["step"][1]
    for form, (end, ys) in outs.items():
        change = changed(starts[form], end)
        if not change and (ys.dtype, ys.weak_type) != (y.dtype, y.weak_type):
            change = f"y: {_kind(ys)} instead of {_kind(y)}"
        changes += [f"{form}, {change}"] if change else []
    return [kept_dtypes(dtype, changes)]


def kept_dtypes(dtype: Any, changes: list[str]) -> Check:
    """The check that nothing is in `changes`: what each form changes of its carry."""
    what = f"{jnp.dtype(dtype).name}: forms that change a dtype"
    rule = "what comes out is of the dtype that went in: a second call compiles nothing new"
    if any("weakly typed" in change for change in changes):
        rule += ". Made of a number of Python, an array has no dtype of its own: give it one"
    return Check("dtypes", what, float(len(changes)), changes[0] if changes else "", 0.0, rule)


def _refused(name, error):
    message = " ".join(str(error).split())[:300]
    if name == "bfloat16" and isinstance(error, ValueError) and _IN_WORDS.match(message):
        return Check("dtypes", "bfloat16 is refused in words", 0.0, limit=0.0)
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
    others = two, memory.init_state(), _stepped(moved, one, x)[0]
    found = []
    for (path, a), b, start, after in zip(
        jax.tree_util.tree_leaves_with_path(one), *map(jax.tree.leaves, others), strict=True
    ):
        if not jnp.issubdtype(a.dtype, jnp.inexact):
            continue
        a, b, start, after = map(np.asarray, (a, b, start, after))
        # By as much at every step: an average of ones moves by itself too, and comes to an end.
        counts = np.allclose(a - start, _STEPS * (after - a), rtol=1e-9, atol=0)
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
    xs = np.random.default_rng(0).normal(size=(BATCH, _STEPS, memory.inputs)).astype(np.float32)
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
