"""Parameters that units share: exact by units and by rows, in a recurrence that is not a cell."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rtrl
import scan
from tests.cases import slow_but

UNITS, INPUTS, TIME = 3, 2, 12
BEGIN = np.zeros(TIME, bool)
BEGIN[[0, 5]] = True


class Mixed(rtrl.AbstractRecurrence):
    """`h_u' = a_u s h_u + W_u tanh(V x)`: a scalar and a matrix are shared."""

    by_unit: bool = eqx.field(static=True)

    @property
    def structure(self):
        return rtrl.Shared(rtrl.Diagonal(), by_unit=self.by_unit)

    def init_state(self):
        return jnp.zeros(UNITS)

    def states(self, parameters, state, xs, begin):
        (a, w), (s, v) = parameters.own, parameters.shared
        return scan.linear(a * s, jnp.tanh(xs @ v.T) @ w.T, state, begin)


def drawn():
    draw = np.random.default_rng(0).normal
    own = jnp.asarray(0.5 * draw(size=UNITS)), jnp.asarray(draw(size=(UNITS, 4)))
    shared = jnp.asarray(0.9), jnp.asarray(draw(size=(4, INPUTS)))
    xs, weights = jnp.asarray(draw(size=(TIME, INPUTS))), jnp.asarray(draw(size=(TIME, UNITS)))
    return rtrl.Parts(own, shared), xs, weights


def total(states, weights):
    return jnp.sum(weights * jnp.sin(states))


@jax.jit
def expected(parameters, xs, weights):
    """Autodiff through a plain loop."""

    def loss(parameters):
        (a, w), (s, v) = parameters.own, parameters.shared

        def step(h, inputs):
            x, begins = inputs
            h = a * s * jnp.where(begins, 0, h) + w @ jnp.tanh(v @ x)
            return h, h

        return total(jax.lax.scan(step, jnp.zeros(UNITS), (xs, BEGIN))[1], weights)

    return jax.grad(loss)(parameters)


@pytest.mark.parametrize("by_unit", [True, False])
@pytest.mark.parametrize("length", slow_but([4], [1, 4, 12]))
def test_the_gradient_is_that_of_the_whole_past(by_unit, length):
    recurrence, (parameters, xs, weights) = Mixed(by_unit), drawn()

    @jax.jit
    def gradient(parameters, carry, xs, begin, weights):
        def loss(parameters):
            after, states = rtrl.segment(recurrence, parameters, carry, xs, begin)
            return total(states, weights), after

        return jax.grad(loss, has_aux=True)(parameters)

    def one_step(parameters, state, xs):
        return recurrence.states(parameters, state, xs, None)[-1]

    state = recurrence.init_state()
    sensitivity = rtrl.init(recurrence.structure, one_step, parameters, state, xs[:1])
    carry, found = (state, sensitivity), None
    for t in range(0, TIME, length):
        part = slice(t, t + length)
        new, carry = gradient(parameters, carry, xs[part], BEGIN[part], weights[part])
        found = new if found is None else jax.tree.map(jnp.add, found, new)
    for got, want in zip(
        jax.tree.leaves(found), jax.tree.leaves(expected(parameters, xs, weights)), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_by_unit_a_copy_for_every_unit_is_kept():
    parameters, *_ = drawn()
    structure = rtrl.Shared(rtrl.Diagonal())
    (kept,) = structure.zeros(parameters, jnp.zeros(UNITS))
    assert [x.shape for x in jax.tree.leaves(kept.shared)] == [(UNITS,), (UNITS, 4, INPUTS)]
    assert [x.shape for x in jax.tree.leaves(kept.own)] == [(UNITS,), (UNITS, 4)]


def test_by_unit_needs_units():
    with pytest.raises(ValueError, match=r"`by_unit` \(=True\) needs rtrl.Diagonal\(\) as `inner`"):
        rtrl.Shared(rtrl.Dense())
