"""How long a memory's traces last, and the eigenvalues of its recurrence."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

import zoo
from rtrl.dense import from_real_vector, to_real_vector
from zoo.annotations import Fraction, fitted
from zoo.memory import named
from zoo.parts import widened
from zoo.parts.checks import shown


def trace_durability(
    cells: zoo.AbstractMemory | Sequence[zoo.AbstractMemory], beta: float = 0.01
) -> np.ndarray:
    """Return how long the traces of Fast and Forgetful Memory last: `log β / -|α|` steps.

    **Arguments:**

    - `cells`: one `zoo.FFM`, or the same at several times of the training.
    - `beta`: the fraction of a trace that is left at its end, in (0, 1).

    **Returns:**

    Shape `[traces]`, or `[traces, contexts]` with `hadamard`; a leading axis over cells where there
    are several. Infinite without decay.

    **Raises:**

    `ValueError` for a `beta` outside (0, 1); `TypeError` for what is no number, or another cell.

    Source: *Reinforcement Learning with Fast and Forgetful Memory*, Morad et al. (2023), figure 6.
    """
    beta = fitted("beta", beta, Fraction)
    return _of_each(cells, lambda cell: cell.trace_durability(beta))


def context_period(cells: zoo.AbstractMemory | Sequence[zoo.AbstractMemory]) -> np.ndarray:
    """Return the periods of the contexts of Fast and Forgetful Memory: `2π / ω` steps.

    Shapes, errors and source as for `trace_durability`. Infinite without context; negative where a
    context has come to turn the other way.
    """
    return _of_each(cells, lambda cell: cell.context_period())


def _of_each(cells, function):
    single = isinstance(cells, zoo.AbstractMemory)
    found = []
    for cell in _several(cells, "cells"):
        if not isinstance(cell, zoo.FFM):
            raise TypeError(
                f"`cells` (a {type(cell).__name__}) must be a zoo.FFM: others have no traces."
            )
        found.append(np.asarray(function(cell)))
    return found[0] if single else np.stack(found)


def _several(memories, name):
    """A list of memories, also of one."""
    if isinstance(memories, zoo.AbstractMemory):
        return [memories]
    if not isinstance(memories, Sequence) or not len(memories):
        raise TypeError(f"`{name}` (={shown(memories)}) must be a memory, or several of one kind.")
    for memory in memories:
        if not isinstance(memory, zoo.AbstractMemory):
            raise TypeError(f"`{name}` (with {shown(memory)}) must hold memories only.")
    if len(kinds := sorted({type(memory).__name__ for memory in memories})) > 1:
        raise TypeError(f"`{name}` (with {', '.join(kinds)}) must be several of one kind.")
    return list(memories)


def eigenvalues(
    memories: zoo.AbstractMemory | Sequence[zoo.AbstractMemory],
    *,
    state: Any = None,
    x: Float[jax.Array, " inputs"] | None = None,
) -> np.ndarray:
    """Return the eigenvalues of a recurrence: what a step multiplies a small change of the state
    by.

    Their modulus says how long a change lasts, their angle how it turns, in radians per step.
    Linear cells whose entries do not act on each other have them as coefficients: the `a` of `h' =
    a ⊙ h + b`, one per entry of the state in the order of the units; of a complex entry the same
    recurrence over real numbers has the conjugate as well. For every other memory they are those of
    the Jacobian of one step in the real numbers of the state, in no particular order.

    **Arguments:**

    - `memories`: one memory, or the same at several times of the training.
    - `state`, `x`: where the Jacobian is taken; an episode's beginning and zeros by default.

    **Returns:**

    Complex, shape `[n]`; a leading axis over memories where there are several.

    **Raises:**

    `TypeError` for what is no memory; `ValueError` for several of different sizes, a `state` or an
    `x` that is none of theirs, and a recurrence that is not finite there.

    Source: *Real-Time Recurrent Learning using Trace Units in Reinforcement Learning*, Elelimy et
    al. (2024), appendix A.3.
    """
    found = [_eigenvalues(memory, state, x) for memory in _several(memories, "memories")]
    if isinstance(memories, zoo.AbstractMemory):
        return found[0]
    if len(sizes := {len(values) for values in found}) > 1:
        raise ValueError(
            f"`memories` (with {', '.join(map(str, sorted(sizes)))} eigenvalues) must be the same "
            "one at several times."
        )
    return np.stack(found)


def _eigenvalues(memory, state, x):
    state = memory.init_state() if state is None else state
    x = memory.check_input(jnp.zeros(memory.inputs) if x is None else x)
    state = memory.check_state(state)
    # Says what is wrong with a memory of several seeds. Its numbers may be NumPy's.
    eqx.filter_eval_shape(type(memory).step, memory, state, x)
    found = np.asarray(widened(_recurrence(memory, state, x)))  # NumPy has none of float16
    if not np.isfinite(found).all():
        raise ValueError(
            f"`memories` (with a {named(memory)}) must have a finite recurrence at `state` and `x`."
        )
    return (np.linalg.eigvals(found) if found.ndim == 2 else found) + 0j


def _recurrence(memory, state, x):
    """The eigenvalues, or the Jacobian that has them."""
    if not any(jnp.issubdtype(jnp.result_type(h), jnp.inexact) for h in jax.tree.leaves(state)):
        return jnp.zeros(0)  # a count of steps, or nothing
    if isinstance(memory, (zoo.AbstractTimeInvariantCell, zoo.AbstractLinearCell)):
        return jnp.broadcast_to(memory.coefficients(x)[0], state.shape).ravel()
    if isinstance(memory, zoo.AbstractTwoAxisCell):
        a, b = memory.coefficients(memory.recurrence_parameters(), x[None])
        return jnp.broadcast_to(a if a.ndim < b.ndim else a[0], b.shape[1:]).ravel()
    return _jacobian(memory, state, x)


@eqx.filter_jit
def _jacobian(memory, state, x):
    """Of one step, in the real numbers of the state; a count in it has no small change."""
    floating, counts = eqx.partition(state, eqx.is_inexact_array)

    def step(numbers):
        start = eqx.combine(from_real_vector(numbers, floating), counts)
        end, _ = memory.step(start, x)
        return to_real_vector(eqx.filter(end, eqx.is_inexact_array))

    return jax.jacobian(step)(to_real_vector(floating))
