"""Forward mode through every cell's scan: against differences, reverse mode and itself twice."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.cases import CELLS, DISTINCT, RULED, for_each
from tests.zoo import forms

TIME = 5
BEGIN = jnp.array([False, False, True, False, False])
# One for each way that a scan is differentiated: linear, two axes, units, blocks, loop and monoid.
SECOND = ("rtu", "ffm", "elstm", "block_diagonal", "gru", "monoid", "mlstm", "stack")
QUICK = ("elstm",)
# Their states are divided by a maximum, a constant to derivatives that cancels in the outputs.
STABILIZED = ("mlstm", "rwkv")


def moved(point, direction, length):
    return jax.tree.map(lambda p, d: p + length * d, point, direction)


def inner(one, other):
    """The real part of the product of a cotangent and a tangent, as JAX pairs them."""
    return sum(
        jnp.sum((a * b).real)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


def problem(case):
    """`(run, point, direction, cotangent)`: the scan as a function of all its real numbers."""
    memory, (state, _), xs, _ = forms.problem(case, 0, TIME)
    rng = np.random.default_rng(1)
    inexact = eqx.is_inexact_array_like
    state = jax.tree.map(lambda h: h if inexact(h) else jnp.asarray(h), state)
    point, rest = eqx.partition((memory, state, xs), inexact)
    point = jax.tree.map(np.asarray, point)  # JAX would compile every operation on every shape
    direction = jax.tree.map(lambda p: forms.normal(rng, p), point)
    moves = case.name not in STABILIZED
    of_state = jax.tree.map(lambda d: d * moves, direction[1])
    direction = (direction[0], of_state, direction[2])

    def run(point):
        memory, state, xs = eqx.combine(point, rest)
        end, ys = memory.scan(state, xs, BEGIN)
        return eqx.filter(end, eqx.is_inexact_array), ys

    out = jax.eval_shape(run, point)
    cotangent = jax.tree.map(lambda y: forms.normal(rng, np.empty(y.shape, y.dtype)), out)
    return run, point, direction, cotangent


@for_each(DISTINCT, quick=QUICK)
def test_tangents_are_differences_and_pair_with_cotangents(case):
    run, point, direction, cotangent = problem(case)
    if case not in RULED:  # that there is one: its numbers are of JAX's rules and of the kind's
        jax.jit(lambda p, d: jax.jvp(run, (p,), (d,))).lower(point, direction)
        return

    @jax.jit
    def compute(point, direction, cotangent):
        value, tangent = jax.jvp(run, (point,), (direction,))
        _, pullback = jax.vjp(run, point)
        (gradient,) = pullback(cotangent)
        return value, tangent, inner(cotangent, tangent), inner(gradient, direction)

    _, tangent, forward, reverse = jax.device_get(compute(point, direction, cotangent))
    np.testing.assert_allclose(forward, reverse, rtol=1e-10, atol=1e-11)
    step = 1e-6
    after, before = (
        jax.device_get(compute(moved(point, direction, s), direction, cotangent)[0])
        for s in (step, -step)
    )
    difference = jax.tree.map(lambda a, b: (a - b) / (2 * step), after, before)
    whole = slice(1 if case.name in STABILIZED else 0, None)
    forms.assert_close(tangent[whole], difference[whole], relative=1e-6)


@pytest.mark.slow
@for_each([case for case in CELLS if case.name in SECOND])
def test_second_derivatives_are_the_same_in_every_order(case):
    """In a loop around the scan too, whose body JAX takes apart."""
    run, point, direction, _ = problem(case)

    def loss(point):
        return sum(jnp.sum(jnp.abs(y) ** 2) for y in jax.tree.leaves(run(point)))

    def slope(point):
        return jax.jvp(loss, (point,), (direction,))[1]

    def looped(point):
        return jnp.mean(jax.lax.scan(lambda p, _: (p, loss(p)), point, None, length=2)[1])

    @jax.jit
    def compute(point):
        forward_over_reverse = jax.jvp(jax.grad(looped), (point,), (direction,))[1]
        reverse_over_forward = jax.grad(slope)(point)
        reverse_over_reverse = jax.grad(lambda p: inner(jax.grad(loss)(p), direction))(point)
        return forward_over_reverse, reverse_over_forward, reverse_over_reverse

    one, two, three = compute(point)
    forms.assert_close(one, three)
    forms.assert_close(two, three)
