"""Nonlinear recurrences: one step after another forward, the adjoint of the states backward."""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, Literal
from jaxtyping import Array, Bool, PyTree

from scan.associative import match_rank
from scan.blocks import blocks
from scan.sequential import reset, sequential

_COUPLINGS = ("units", "dense")


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

    Unlike that of `scan.sequential`, the gradient does not go back through the loop's operations.
    Given the states, their Jacobians are found for all steps at once, their total cotangents by
    one linear recurrence backward, and those of parameters and inputs by one product for all steps.
    States that are known already are differentiated without computing them again.

    **Arguments:**

    - `update`: one step, `(parameters, state, x) -> state`. It must not close over arrays that a
      gradient is taken of.
    - `parameters`: what the gradient is taken of, besides `state` and `xs`; floating-point leaves.
    - `state`: the state carried in; real leaves.
    - `xs`: inputs, every leaf with a leading time axis.
    - `begin`: shape `[time]`; where true, the state is replaced by `initial`, a constant.
    - `initial`: the state at the beginning of an episode. Needed when `begin` is given.
    - `coupling`: `"units"` where the state's leaves have one shape and no unit acts on another.
      `"dense"` for any other: cotangents then go back step by step, and `scan.sequential` is as
      fast, unless the states are known.
    - `states`: the states, where they are known, from another method or another call.

    **Returns:**

    The states after every step, with a leading time axis.

    **Raises:**

    `ValueError` naming the argument, its value and the rule.
    """
    check_recurrence(state, begin, initial, coupling)
    initial = jax.tree.map(jnp.zeros_like, state) if initial is None else initial
    used, update = _of_used(update, parameters, state, xs)
    initial = jax.lax.stop_gradient(initial)
    if states is None:
        constants, start, inputs = jax.lax.stop_gradient((used, state, xs))
        _, states = sequential(partial(update, constants), start, inputs, begin, initial=initial)
    states = jax.lax.stop_gradient(states)
    return _solution(update, coupling, used, state, xs, begin, initial, states)


def check_recurrence(state: PyTree, begin: Any, initial: PyTree, coupling: str) -> None:
    """Check what `nonlinear` and `newton` are given.

    **Arguments:**

    - `state`, `begin`, `initial`, `coupling`: as given.

    **Raises:**

    `ValueError` naming the argument, its value and the rule.
    """
    if coupling not in _COUPLINGS:
        raise ValueError(f"`coupling` (={coupling!r}) must be one of {', '.join(_COUPLINGS)}.")
    if begin is not None and initial is None:
        raise ValueError("`initial` (=None) must be given with `begin`: the state to reset to.")
    leaves = jax.tree.leaves(state)
    shapes = [leaf.shape for leaf in leaves]
    if coupling == "units" and len(set(shapes)) > 1:
        raise ValueError(f"`state` has leaves of shapes {shapes}: `coupling='units'` needs one.")
    if any(jnp.iscomplexobj(leaf) for leaf in leaves):
        raise ValueError("`state` has a complex leaf: give its real and imaginary part.")
    if not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves):
        raise ValueError(f"`state` has leaves of {[str(h.dtype) for h in leaves]}: give real ones.")


def needed(program: Jaxpr) -> list[bool]:
    """Which inputs of a traced program its results depend on.

    **Arguments:**

    - `program`: a traced program.

    **Returns:**

    A boolean for each of its inputs.
    """
    variables = lambda atoms: {v for v in atoms if not isinstance(v, Literal)}  # noqa: E731
    used = variables(program.outvars)
    for equation in reversed(program.eqns):
        if not used.isdisjoint(equation.outvars):
            used |= variables(equation.invars)
    return [v in used for v in program.invars]


def _of_used(update, parameters, state, xs):
    """The parameters that a step depends on, and the step as a function of them.

    So that a traced program shows which parameters the states are functions of.
    """
    leaves, treedef = jax.tree.flatten(parameters)
    shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
    x = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), xs)
    traced = jax.make_jaxpr(lambda leaves, *rest: update(treedef.unflatten(leaves), *rest))
    flags = needed(traced(shapes, state, x).jaxpr)[: len(leaves)]

    def update_of_used(used, state, x):
        used = iter(used)
        whole = [
            next(used) if flag else jnp.zeros(shape.shape, shape.dtype)
            for flag, shape in zip(flags, shapes, strict=True)
        ]
        return update(treedef.unflatten(whole), state, x)

    return [leaf for flag, leaf in zip(flags, leaves, strict=True) if flag], update_of_used


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _solution(update, coupling, parameters, state, xs, begin, initial, states):
    return states


def _solution_forward(update, coupling, *arguments):
    # Second derivatives see that the states among the residuals are functions of the parameters.
    states = _solution(update, coupling, *arguments)
    return states, (*arguments[:-1], states)


def _solution_backward(update, coupling, residuals, cotangent):
    parameters, state, xs, begin, initial, states = residuals
    before = jax.tree.map(lambda h, hs: jnp.concatenate([h[None], hs[:-1]]), state, states)
    if begin is not None:
        before = jax.vmap(reset, (0, None, 0))(begin, initial, before)
    find = _adjoint_of_units if coupling == "units" else _adjoint_in_a_loop
    adjoint, d_state = find(partial(update, parameters), before, xs, begin, cotangent)

    def steps(parameters, xs):
        return jax.vmap(partial(update, parameters))(before, xs)

    d_parameters, d_xs = jax.vjp(steps, parameters, xs)[1](adjoint)
    return d_parameters, d_state, d_xs, None, None, None


_solution.defvjp(_solution_forward, _solution_backward)


def _adjoint_of_units(update, before, xs, begin, cotangent):
    """Total cotangents of all states, and that of the state carried in."""
    _, tangent_of = jax.linearize(lambda h: jax.vmap(update)(h, xs), before)
    leaves, treedef = jax.tree.flatten(before)

    def column(j):
        unit = [jnp.ones_like(h) if i == j else jnp.zeros_like(h) for i, h in enumerate(leaves)]
        return jax.tree.leaves(tangent_of(treedef.unflatten(unit)))

    # back[j][k]: what a cotangent of component k adds to that of component j a step before.
    back = [column(j) for j in range(len(leaves))]
    if begin is not None:  # nothing flows from a step that begins an episode
        back = jax.tree.map(lambda x: jnp.where(match_rank(begin, x), 0, x), back)
    total, d_state = jax.lax.platform_dependent(
        back, jax.tree.leaves(cotangent), begin, cpu=_back_in_a_loop, default=_back_in_a_tree
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
    later = jnp.concatenate([back[1:], jnp.zeros_like(back[:1])])
    total = blocks(later, direct, jnp.zeros_like(direct[0]), stopped, reverse=True)
    d_state = jnp.sum(back[0] * total[0][..., None, :], -1)
    if begin is not None:
        d_state = jnp.where(begin[0], 0, d_state)
    return list(jnp.moveaxis(total, -1, 0)), list(jnp.moveaxis(d_state, -1, 0))


def _adjoint_in_a_loop(update, before, xs, begin, cotangent):
    """The same where units may act on one another: step by step."""

    def step(carry, inputs):
        direct, at, x, begins = inputs
        total = jax.tree.map(jnp.add, direct, carry)
        (through,) = jax.vjp(lambda h: update(h, x), at)[1](total)
        if begin is not None:
            through = reset(begins, jax.tree.map(jnp.zeros_like, through), through)
        return through, total

    start = jax.tree.map(lambda g: jnp.zeros_like(g[0]), cotangent)
    d_state, adjoint = jax.lax.scan(step, start, (cotangent, before, xs, begin), reverse=True)
    return adjoint, d_state
