"""Matrices whose parameters belong to rows, columns or entries, against one long BPTT."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rtrl
import scan

TIME, GROUPS, ROWS, COLUMNS, INPUTS = 6, 2, 3, 6, 4
DRAW = np.random.default_rng(0)
XS = jax.device_put(DRAW.normal(size=(TIME, INPUTS)))
BEGIN = jax.device_put(np.arange(TIME) == 1)
WEIGHTS = jax.device_put(DRAW.normal(size=(TIME, GROUPS, ROWS, COLUMNS)))


def draw(*shape):
    return jax.device_put(DRAW.normal(size=shape))


PARAMETERS = rtrl.Axes(
    both=draw(GROUPS, ROWS, COLUMNS),
    rows={"decay": draw(GROUPS, ROWS), "w": draw(GROUPS, ROWS, INPUTS)},
    columns=draw(GROUPS, COLUMNS - 1, INPUTS),  # the last column is of no parameter
)
ALIKE = rtrl.Axes(
    rows={"bias": draw(GROUPS, ROWS), "w": draw(GROUPS, ROWS, INPUTS)},
    columns=draw(GROUPS, COLUMNS - 1, INPUTS),
)


class Outer(rtrl.AbstractRecurrence):
    """`S ← a ⊙ S + u vᵀ`, with decays by entry and row, or one for all."""

    compressed: bool = False

    @property
    def structure(self):
        return rtrl.TwoAxes(compressed=self.compressed, probes_at_once=2)

    def init_state(self):
        return jnp.zeros((GROUPS, ROWS, COLUMNS))

    def states(self, parameters, state, xs, begin):
        u = jnp.einsum("gri,ti->tgr", parameters.rows["w"], xs)
        u = u + parameters.rows["bias"][None] if self.compressed else u
        v = jnp.einsum("gci,ti->tgc", parameters.columns, xs)
        v = jnp.concatenate([v, jnp.ones((len(xs), GROUPS, 1))], -1)
        a = jnp.full((GROUPS, ROWS, COLUMNS), 0.9)
        if not self.compressed:
            a = jnp.tanh(parameters.both + parameters.rows["decay"][..., None])
        return scan.linear(a, u[..., None] * v[..., None, :], state, begin)


@pytest.mark.parametrize(("compressed", "length"), [(False, 3), (True, 2)])
def test_the_gradient_is_that_of_the_whole_past(compressed, length):
    recurrence = Outer(compressed)
    parameters = ALIKE if compressed else PARAMETERS
    state = draw(GROUPS, ROWS, COLUMNS)

    def whole(parameters):
        states = recurrence.states(parameters, state, XS, BEGIN)
        return jnp.sum(WEIGHTS * jnp.sin(states))

    def by_segments(parameters):
        update = lambda p, h, xs: recurrence.states(p, h, xs, None)[-1]  # noqa: E731
        sensitivity = rtrl.init(
            recurrence.structure, update, parameters, recurrence.init_state(), XS[:1]
        )
        carry, loss = (state, sensitivity), 0.0
        for start in range(0, TIME, length):
            part = slice(start, start + length)
            carry, states = rtrl.segment(recurrence, parameters, carry, XS[part], BEGIN[part])
            loss += jnp.sum(WEIGHTS[part] * jnp.sin(states))
        return loss

    got, expected = (jax.jit(jax.value_and_grad(f))(parameters) for f in (by_segments, whole))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12), got, expected
    )


@pytest.mark.parametrize(
    ("parameters", "state", "error", "message"),
    [
        (
            {"w": jnp.ones(3)},
            jnp.zeros((3, 3)),
            TypeError,
            r"`parameters` \(of kind dict\) must be",
        ),
        (rtrl.Axes(), jnp.zeros(3), ValueError, r"`state` \(shape \(3,\)\) must begin with"),
        (rtrl.Axes(), (), ValueError, r"`state` \(without a number\) must begin with"),
    ],
)
def test_what_has_no_two_axes_is_named(parameters, state, error, message, unhooked):
    with pytest.raises(error, match=message):
        rtrl.TwoAxes().zeros(parameters, state)
