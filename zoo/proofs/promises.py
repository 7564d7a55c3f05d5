"""What a memory promises before anything is derived from it: shapes, constants, structure."""

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
from zoo.proofs.forms import jit, perturbed
from zoo.proofs.loop import plain_loop, plain_step
from zoo.proofs.losses import difference
from zoo.proofs.probes import leaks, not_holomorphic
from zoo.proofs.report import Check
from zoo.stack import cells

STEPS = 5
_DRAWS = 3
_LINEAR = (AbstractLinearCell, AbstractTimeInvariantCell, AbstractTwoAxisCell)


@jit
def reached(memory: AbstractMemory, xs: Any) -> Any:
    """The state after a few inputs."""
    states, _ = plain_loop(memory, memory.init_state(), xs, jnp.zeros(len(xs), bool))
    return jax.tree.map(lambda h: h[-1], states)


@jit
def stepped(memory: AbstractMemory, state: Any, x: Any) -> Any:
    """A step's state and output."""
    return memory.step(state, x)


def draws(memory: AbstractMemory) -> Iterator[tuple[Any, Any, Any]]:
    """Parameters, a state that they lead to, and an input; all random."""
    for seed in range(_DRAWS):
        xs = np.random.default_rng(seed).normal(size=(STEPS + 1, memory.inputs))
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
        for h in jax.tree.leaves((reached_state, stepped(moved, reached_state, last))):
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
