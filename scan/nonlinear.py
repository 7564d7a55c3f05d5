"""Nonlinear recurrences: one step after another, and the derivatives of the states they have."""

import contextlib
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from scan._checks import check_arrays, check_recurrence, check_steps
from scan._linear_map import linear_map
from scan._platform import loop_or_tree, steps_at_once
from scan._stand_in import stand_in
from scan._varying import vary_together
from scan.associative import match_rank
from scan.blocks import blocks
from scan.hoisted import ahead, hoisted, hoisting
from scan.programs import apart, as_program, has_named_axis, has_reverse_rule, is_pure, one_of
from scan.sequential import reset, sequential
from scan.tangents import with_tangent


def nonlinear(
    update: Callable[[Any, Any, Any], Any],
    parameters: PyTree,
    state: PyTree,
    xs: PyTree,
    begin: Bool[Array, " time"] | None = None,
    *,
    initial: PyTree = None,
    coupling: str = "units",
    states: PyTree = None,
) -> PyTree:
    """All states of `h_t = update(parameters, h_{t-1}, x_t)`, one step after another.

    Unlike those of `scan.sequential`, derivatives do not go through the loop's operations. Given
    the states, their Jacobians are found for all steps at once. Backward, the states' total
    cotangents are one linear recurrence, and those of parameters and inputs one product for all
    steps; forward, the states' tangents are one linear recurrence. States that are known already
    are differentiated without computing them again. Of a step with a `jax.custom_vjp` of the state,
    as spiking units have for their surrogate gradient, that of units is `scan.sequential`, with
    derivatives in reverse mode only; a `jax.custom_jvp` is as any other operation. A step that acts
    over an axis of a `jax.vmap` is `scan.sequential` too.

    **Arguments:**

    - `update`: one step, `(parameters, state, x) -> state`. What it closes over is a parameter too.
    - `parameters`: what the gradient is taken of, besides `state` and `xs`; floating-point leaves.
    - `state`: the state carried in; real leaves.
    - `xs`: inputs, every leaf with a leading time axis.
    - `begin`: shape `[time]`; where true, the state is replaced by `initial`, a constant.
    - `initial`: the state at the beginning of an episode. Needed when `begin` is given.
    - `coupling`: `"units"` where the state's leaves have one shape and dtype and no unit acts on
      another. `"dense"` for any other: derivatives then go step by step, and on a CPU
      `scan.sequential` is as fast, unless the states are known.
    - `states`: the states, where they are known, from another method or another call.

    **Returns:**

    The states after every step, with a leading time axis.

    **Raises:**

    `ValueError` or `TypeError` naming the argument, its value and the rule.
    """
    state, begin = check_recurrence(state, xs, begin, initial, coupling, states)
    check_arrays("parameters", parameters)
    if states is not None:
        states = jax.tree.map(lambda known, h: jnp.asarray(known, h.dtype), states, state)
    initial = None if begin is None else jax.lax.stop_gradient(initial)
    parameters, state, xs, begin, initial, states = vary_together(
        parameters, state, xs, begin, initial, states
    )
    with hoisting() if coupling == "dense" else contextlib.nullcontext():
        step, parameters = as_program(update, parameters, state, xs)
    if has_named_axis(step) or (coupling == "units" and has_reverse_rule(step, state)):
        # Rules are called where a named axis is gone. And the Jacobian of units is taken forward,
        # which a rule for reverse mode forbids.
        return _in_turn(step, coupling, state, parameters, xs, begin, initial)
    if states is None:
        given = jax.lax.stop_gradient((state, parameters, xs))
        in_turn, several = (partial(f, step, coupling) for f in (_in_turn, _several_at_once))
        time = check_steps("xs", xs)
        result = jax.tree.map(lambda h: jax.ShapeDtypeStruct((time, *h.shape), h.dtype), state)
        states = _by_platform(step, in_turn, several, *given, begin, initial, result=result)
    return solution(step, coupling, parameters, state, xs, begin, initial, states)


def _by_platform(step, in_turn, at_once, *arguments, result):
    """Of a CPU, or of any other: of two loops the one that a program is lowered for is traced."""
    if not is_pure(step):
        return in_turn(*arguments)
    branches = {"cpu": in_turn, "default": at_once}
    return stand_in(branches, in_turn, *arguments, result=result)


def _in_turn(step, coupling, state, parameters, xs, begin, initial):
    update = partial(step, parameters)
    if coupling == "dense":
        update = hoisted(step, parameters, state, xs)
    return sequential(update, state, xs, begin, initial=initial)[1]


def _several_at_once(step, coupling, state, parameters, xs, begin, initial):
    """The same where a loop's turns are dear: as little as can be in each, and as few."""
    update, drives = ahead(step, parameters, state, xs)
    steps = steps_at_once(coupling, update, state, one_of(drives))
    return sequential(update, state, drives, begin, initial=initial, unroll=steps)[1]


def solution(step, coupling, parameters, state, xs, begin, initial, states):
    """The states, with the derivatives of the equation that they solve.

    **Arguments:** those of `nonlinear`, checked; `step` and `parameters` are what `as_program`
    makes.
    """
    # Derivatives are those of the equation that the states solve, not of how they were found.
    states = jax.lax.stop_gradient(states)
    rule = partial(_tangent_rule, step, coupling)
    return with_tangent(rule, states, parameters, state, xs, begin, initial)


def _tangent_rule(step, coupling, states, arguments, tangents):
    moving = tangents[:3]
    wanted = tuple(tuple(t is not None for t in tangent) for tangent in moving)
    forward = partial(_tangent, step, coupling, wanted)
    transpose = partial(_cotangents, step, coupling, wanted)
    return linear_map(forward, transpose, states, arguments, moving)


def _tangent(step, coupling, wanted, states, residuals, tangents):
    """The linear recurrence `dh_t = J_t dh_{t-1} + (∂f/∂θ dθ + ∂f/∂x dx_t)`."""
    parameters, state, xs, begin, initial = residuals
    of_parameters, of_state, of_xs = tangents
    before = states_before(state, begin, initial, states)
    steps, moved = _as_function_of(step, wanted, before, parameters, xs)
    _, drive = jax.jvp(steps, moved, (_kept(of_parameters), _kept(of_xs)))
    start = jax.tree.map(jnp.zeros_like, jax.tree.leaves(state))
    start = [z if t is None else t for z, t in zip(start, of_state, strict=True)]
    start = jax.tree.unflatten(jax.tree.structure(state), start)
    find = _tangent_of_units if coupling == "units" else _tangent_in_a_loop
    return find(partial(step, parameters), before, xs, begin, drive, start)


def _cotangents(step, coupling, wanted, states, residuals, cotangent):
    """The adjoint of that recurrence, and one product for all steps."""
    parameters, state, xs, begin, initial = residuals
    before = states_before(state, begin, initial, states)
    if coupling == "units":
        update = partial(step, parameters)
        adjoint, of_state = _adjoint_of_units(update, before, xs, begin, cotangent)
    else:
        in_turn, known = (partial(f, step) for f in (_adjoint_in_turn, _adjoint_of_known))
        given = cotangent, parameters, before, xs, begin
        adjoint, of_state = _by_platform(step, in_turn, known, *given, result=(cotangent, state))
    steps, moved = _as_function_of(step, wanted, before, parameters, xs)
    of_parameters, of_xs = jax.vjp(steps, *moved)[1](adjoint)
    found = iter(of_parameters), iter(jax.tree.leaves(of_state)), iter(of_xs)
    of_parameters = [next(found[0]) if want else None for want in wanted[0]]
    of_state = [c if want else None for c, want in zip(found[1], wanted[1], strict=True)]
    return [of_parameters, of_state, [next(found[2]) if want else None for want in wanted[2]]]


def states_before(state: PyTree, begin: Array | None, initial: PyTree, states: PyTree) -> PyTree:
    """The state that every step starts from.

    **Arguments:**

    - `state`: the one carried in.
    - `begin`, `initial`: where the state is replaced, and by what.
    - `states`: those after every step.
    """
    before = jax.tree.map(lambda h, hs: jnp.concatenate([h[None], hs[:-1]]), state, states)
    return before if begin is None else jax.vmap(reset, (0, None, 0))(begin, initial, before)


def _as_function_of(step, wanted, before, parameters, xs):
    """All steps as a function of those parameters and inputs that derivatives are wanted of."""
    leaves, treedef = jax.tree.flatten(xs)

    def steps(some_parameters, some_xs):
        p = _merged(wanted[0], some_parameters, parameters)
        x = treedef.unflatten(_merged(wanted[2], some_xs, leaves))
        return jax.vmap(partial(step, p))(before, x)

    chosen = [leaf for want, leaf in zip(wanted[0], parameters, strict=True) if want]
    return steps, (chosen, [leaf for want, leaf in zip(wanted[2], leaves, strict=True) if want])


def _merged(wanted, some, others):
    some = iter(some)
    return [next(some) if want else other for want, other in zip(wanted, others, strict=True)]


def _kept(tangents):
    return [t for t in tangents if t is not None]


def _tangent_of_units(update, before, xs, begin, drive, start):
    columns = [jnp.stack(column, -1) for column in _columns(update, before, xs)]
    drive, first = (jnp.stack(jax.tree.leaves(parts), -1) for parts in (drive, start))
    tangent = blocks(jnp.stack(columns, -1), drive, first, begin)
    return jax.tree.unflatten(jax.tree.structure(start), list(jnp.moveaxis(tangent, -1, 0)))


def _tangent_in_a_loop(update, before, xs, begin, drive, start):
    """The same where units may act on one another: step by step."""

    def step(tangent, inputs):
        direct, at, x, begins = inputs
        if begin is not None:
            tangent = reset(begins, jax.tree.map(jnp.zeros_like, tangent), tangent)
        _, through = jax.jvp(lambda h: update(h, x), (at,), (tangent,))
        tangent = jax.tree.map(jnp.add, through, direct)
        return tangent, tangent

    return jax.lax.scan(step, start, (drive, before, xs, begin))[1]


def _columns(update, before, xs):
    """The Jacobian of every step for coupled components of units, column by column."""
    _, tangent_of = jax.linearize(lambda h: jax.vmap(update)(h, xs), before)
    leaves, treedef = jax.tree.flatten(before)

    def column(j):
        unit = [jnp.ones_like(h) if i == j else jnp.zeros_like(h) for i, h in enumerate(leaves)]
        return jax.tree.leaves(tangent_of(treedef.unflatten(unit)))

    return [column(j) for j in range(len(leaves))]


def _adjoint_of_units(update, before, xs, begin, cotangent):
    """Total cotangents of all states, and that of the state carried in."""
    treedef = jax.tree.structure(before)
    # back[j][k]: what a cotangent of component k adds to that of component j a step before.
    back = _columns(update, before, xs)
    if begin is not None:  # nothing flows from a step that begins an episode
        back = jax.tree.map(lambda x: jnp.where(match_rank(begin, x), 0, x), back)
    total, d_state = loop_or_tree(
        _back_in_a_loop, _back_in_a_tree, back, jax.tree.leaves(cotangent), begin
    )
    return treedef.unflatten(total), treedef.unflatten(d_state)


def _back_in_a_loop(back, direct, begin):
    def step(carry, inputs):
        back, direct, begins = inputs
        total = [d + c for d, c in zip(direct, carry, strict=True)]
        carry = [reduce(jnp.add, map(jnp.multiply, row, total)) for row in back]
        if begin is not None:  # a NaN neither
            carry = [jnp.where(begins, 0, c) for c in carry]
        return carry, total

    start = [jnp.zeros_like(d[0]) for d in direct]
    d_state, total = jax.lax.scan(step, start, (back, direct, begin), reverse=True)
    return total, d_state


def _back_in_a_tree(back, direct, begin):
    back = jnp.stack([jnp.stack(row, -1) for row in back], -2)
    direct = jnp.stack(direct, -1)
    stopped = None if begin is None else jnp.concatenate([begin[1:], jnp.zeros(1, bool)])
    # The blocks of the step after, as the recurrence goes backward; after the last there is none.
    later = jnp.concatenate([back[1:], jnp.zeros_like(back[:1])])
    total = blocks(later, direct, jnp.zeros_like(direct[0]), stopped, reverse=True)
    d_state = jnp.sum(back[0] * total[0][..., None, :], -1)
    if begin is not None:
        d_state = jnp.where(begin[0], 0, d_state)
    return list(jnp.moveaxis(total, -1, 0)), list(jnp.moveaxis(d_state, -1, 0))


def _adjoint_in_turn(step, cotangent, parameters, before, xs, begin):
    """The same where units may act on one another: step by step."""

    def back(inputs, total):
        at, x = inputs
        return jax.vjp(lambda h: step(parameters, h, x), at)[1](total)[0]

    return _back_in_turn(back, (before, xs), begin, cotangent)


def _adjoint_of_known(step, cotangent, parameters, before, xs, begin):
    """The same with what derivatives take of states and inputs computed for all steps at once."""

    def pullback(parameters, at, x):
        return jax.vjp(lambda h: step(parameters, h, x), at)[1]

    join, varying = apart(pullback, parameters, before, xs)

    def back(varying, total):
        return join(varying)(total)[0]

    steps = steps_at_once("dense", back, one_of(varying), one_of(cotangent))
    return _back_in_turn(back, varying, begin, cotangent, unroll=steps)


def _back_in_turn(back, of_steps, begin, cotangent, unroll=1):
    def step(carry, inputs):
        direct, of_step, begins = inputs
        total = jax.tree.map(jnp.add, direct, carry)
        through = back(of_step, total)
        if begin is not None:
            through = reset(begins, jax.tree.map(jnp.zeros_like, through), through)
        return through, total

    start = jax.tree.map(lambda g: jnp.zeros_like(g[0]), cotangent)
    inputs = cotangent, of_steps, begin
    d_state, adjoint = jax.lax.scan(step, start, inputs, reverse=True, unroll=unroll)
    return adjoint, d_state
