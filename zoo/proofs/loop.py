"""The plain loop: what a memory states, one step after another, with plain autodiff.

Everything that the library derives from a memory's equations is compared with this loop, so that
it uses nothing of the library: no scan, no sensitivity, no rule for a derivative.
"""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from zoo.cell import AbstractCell
from zoo.fronted import Fronted
from zoo.kinds.dense import AbstractUnstructuredCell
from zoo.kinds.finite import AbstractFiniteMemory
from zoo.memory import State
from zoo.stack import Stack
from zoo.windowed import Windowed


@singledispatch
def plain_step(memory: Any, state: State, x: Array) -> tuple[State, Array]:
    """Take one step as the memory's definition says; `plain_step.register` takes further kinds.

    A memory that is none of the library's kinds defines no more than its `step`.
    """
    return memory.step(state, x)


@plain_step.register
def _(memory: AbstractCell, state, x):
    state = memory.update(state, x)
    return state, memory.readout(state, x)


@plain_step.register
def _(memory: Stack, state, x):
    states = []
    for block, inner in zip(memory.blocks, state, strict=True):
        inner, y = plain_step(block.cell, inner, block.before(x))
        states.append(inner)
        x = block.after(x, y)
    return tuple(states), x


@plain_step.register
def _(memory: Windowed, state, x):
    past, inner = state
    seen = jnp.concatenate([past, x[None]])
    inner, y = plain_step(memory.cell, inner, seen.ravel())
    return (seen[1:], inner), y


@plain_step.register
def _(memory: AbstractFiniteMemory, state, x):
    past, count = state
    age = jnp.arange(len(past) + 1, dtype=count.dtype) - len(past) + count
    seen = jnp.concatenate([past, x[None]])
    y = memory.respond(seen, age)[-1]
    return (seen[1:], jnp.minimum(count + 1, len(past))), y


@singledispatch
def surrogate_step(memory: Any, state: State, x: Array) -> State:
    """Take the next state, with the derivatives that a sensitivity takes across a segment's start.

    For an exact recurrence that is the plain step. `x` is a constant: what is in front of a memory
    learns from the present segment.
    """
    return plain_step(memory, state, x)[0]


@surrogate_step.register
def _(memory: AbstractCell, state, x):
    return memory.surrogate_update(state, x)


@surrogate_step.register
def _(memory: Stack, state, x):
    if memory.credit == "exact":
        return plain_step(memory, state, x)[0]
    states = []
    for block, inner in zip(memory.blocks, state, strict=True):
        into = jax.lax.stop_gradient(block.before(x))
        states.append(surrogate_step(block.cell, inner, into))
        x = block.after(x, plain_step(block.cell, inner, into)[1])
    return tuple(states)


@surrogate_step.register
def _(memory: Windowed, state, x):
    past, inner = state
    seen = jax.lax.stop_gradient(jnp.concatenate([past, x[None]]))
    return seen[1:], surrogate_step(memory.cell, inner, seen.ravel())


@singledispatch
def segment_step(memory: Any, state: State, x: Array) -> tuple[State, Array]:
    """Take one step with the derivatives that RTRL's forms have inside of a segment.

    The plain step, but for rules that cut the gradient at every step.
    """
    return plain_step(memory, state, x)


@segment_step.register
def _(memory: AbstractUnstructuredCell, state, x):
    rule = memory.sensitivity
    if not rule.at_every_step:
        return plain_step(memory, state, x)
    state = memory.surrogate_update(rule.followed(state), x)
    return state, memory.readout(state, x)


@segment_step.register
def _(memory: Fronted, state, x):
    return segment_step(memory.cell, state, memory.front(x))


@segment_step.register
def _(memory: Stack, state, x):
    if memory.credit == "exact":
        return plain_step(memory, state, x)
    states = []
    for block, inner in zip(memory.blocks, state, strict=True):
        inner, y = segment_step(block.cell, inner, block.before(x))
        states.append(inner)
        x = block.after(x, y)
    return tuple(states), x


@segment_step.register
def _(memory: Windowed, state, x):
    past, inner = state
    seen = jnp.concatenate([past, x[None]])
    inner, y = segment_step(memory.cell, inner, seen.ravel())
    return (seen[1:], inner), y


def plain_loop(
    memory: Any,
    state: State,
    xs: Float[Array, "time inputs"],
    begin: Bool[Array, " time"],
    cuts: Bool[Array, " time"] | None = None,
    *,
    across: str = "sensitivity",
    within: Callable[[Any, State, Array], tuple[State, Array]] = plain_step,
) -> tuple[State, Float[Array, "time outputs"]]:
    """Run a memory in a plain loop.

    **Arguments:**

    - `memory`: a memory, or anything else with an `init_state` that `plain_step` takes.
    - `state`: the state carried in.
    - `xs`: inputs, shape `[time, inputs]`.
    - `begin`: shape `[time]`.
    - `cuts`: true at the first step of every segment. Values do not depend on it.
    - `across`: which derivatives cross a cut: those of the `"sensitivity"` that RTRL carries, or
      `"nothing"`, as in truncated BPTT.
    - `within`: a step and its derivatives between cuts: `plain_step`, or `segment_step`.

    **Returns:**

    `(states, ys)`, each with a leading time axis.
    """
    initial = memory.init_state()
    cuts = jnp.zeros(len(xs), bool) if cuts is None else cuts

    def choose(flag, one, other):
        return jax.tree.map(lambda a, b: jnp.where(flag, a, b), one, other)

    def step(carry, inputs):
        # Two copies of one state: the first has the derivatives of the segment, from its start on,
        # the second those that the sensitivity will have at the next start.
        x, begin_t, cut = inputs
        state, carried = carry
        at_start = carried if across == "sensitivity" else jax.lax.stop_gradient(state)
        state = choose(cut, at_start, state)
        state, carried = choose(begin_t, initial, state), choose(begin_t, initial, carried)
        if across == "sensitivity":
            carried = surrogate_step(memory, carried, jax.lax.stop_gradient(x))
        state, y = within(memory, state, x)
        return (state, carried), (state, y)

    return jax.lax.scan(step, (state, state), (xs, begin, cuts))[1]
