"""Integer arrays as fields of a nonlinear cell: a table, a shift, a mask."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rtrl
import zoo

XS = np.random.default_rng(0).normal(size=(6, 2))
BEGIN = jnp.asarray(np.arange(6) == 4)


class Lagged(zoo.AbstractDiagonalCell):
    """Units that leak at fixed whole rates."""

    w: jax.Array
    rate: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        self.w = jax.random.normal(key, (hidden, inputs))
        self.rate = jnp.arange(1, hidden + 1)
        self.inputs, self.hidden = inputs, hidden

    def update(self, state, x):
        return jnp.tanh(state / self.rate + x @ self.w.T)


class Masked(zoo.AbstractDenseCell):
    """A network with fixed connections."""

    w: jax.Array
    u: jax.Array
    mask: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    sensitivity: rtrl.AbstractSensitivity = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        w_key, u_key = jax.random.split(key)
        self.w = jax.random.normal(w_key, (hidden, inputs))
        self.u = jax.random.normal(u_key, (hidden, 1, hidden))
        self.mask = jnp.tri(hidden, dtype=int)[:, None]
        self.inputs, self.hidden, self.sensitivity = inputs, hidden, rtrl.SnAp1()

    def transition(self, state, x, recurrent):
        return jnp.tanh(x @ self.w.T + recurrent(self.u * self.mask, state)[:, 0])


def by_step(cell, xs):
    _, ys = jax.lax.scan(lambda h, x: cell.step(h, *x), cell.init_state(), (xs, BEGIN))
    return jnp.sum(ys**2)


def by_scan(method):
    def loss(cell, xs):
        return jnp.sum(cell.scan(cell.init_state(), xs, BEGIN, method=method)[1] ** 2)

    return loss


def by_rtrl_step(cell, xs):
    carry = cell.init_state(), cell.rtrl_init()
    _, ys = jax.lax.scan(lambda c, x: cell.rtrl_step(c, *x), carry, (xs, BEGIN))
    return jnp.sum(ys**2)


def by_rtrl_scan(cell, xs):
    carry = cell.init_state(), cell.rtrl_init()
    carry, first = cell.rtrl_scan(carry, xs[:4], BEGIN[:4])
    _, second = cell.rtrl_scan(carry, xs[4:], BEGIN[4:])
    return jnp.sum(first**2) + jnp.sum(second**2)


FORMS = {
    "rtrl_scan": by_rtrl_scan,
    "scan": by_scan("auto"),
    "newton": by_scan("newton"),
    "rtrl_step": by_rtrl_step,
    "step": by_step,
}


def assert_close(got, expected):
    compare = lambda g, e: np.testing.assert_allclose(g, e, rtol=1e-9, atol=1e-12)  # noqa: E731
    jax.tree.map(compare, got, expected)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "form"), list(itertools.product((Lagged, Masked), FORMS)))
def test_integer_arrays_travel(kind, form):
    """Under jit and grad in both orders, inside a scan, and in an ensemble of cells."""
    cells = [kind(2, 3, key=key) for key in jax.random.split(jax.random.key(0), 2)]
    batch = jnp.asarray(np.stack([XS, 2 * XS]))
    loss = FORMS[form]
    gradient = eqx.filter_jit(eqx.filter_grad(loss))
    # SnAp-1 over segments is an approximation: there RTRL is compared with itself, one by one.
    exact = kind is Lagged or not form.startswith("rtrl")
    reference = by_step if exact else loss
    expected = [eqx.filter_jit(eqx.filter_grad(reference))(cell, batch[0]) for cell in cells]
    assert_close(gradient(cells[0], batch[0]), expected[0])
    assert_close(eqx.filter_grad(eqx.filter_jit(loss))(cells[0], batch[0]), expected[0])

    def carried(cell, batch):
        """The cell in the carry of a scan that is differentiated as a whole."""
        arrays, static = eqx.partition(cell, eqx.is_array)

        def body(arrays, xs):
            return arrays, loss(eqx.combine(arrays, static), xs)

        return jnp.sum(jax.lax.scan(body, arrays, batch)[1])

    twice = eqx.filter_jit(eqx.filter_grad(carried))(cells[0], jnp.stack([batch[0]] * 2))
    assert_close(twice, jax.tree.map(lambda g: 2 * g, expected[0]))

    @eqx.filter_jit
    def over_inputs(cell, batch):
        def body(total, xs):
            value, g = eqx.filter_value_and_grad(loss)(cell, xs)
            return total + value, g

        return jax.lax.scan(body, 0.0, batch)

    total, gradients = over_inputs(cells[0], batch)
    assert_close(total, sum(eqx.filter_jit(by_step)(cells[0], xs) for xs in batch))
    assert_close(jax.tree.map(lambda g: g[0], gradients), expected[0])

    ensemble = jax.tree.map(lambda *x: jnp.stack(x), *cells)
    each = eqx.filter_vmap(eqx.filter_grad(loss), in_axes=(eqx.if_array(0), None))
    got = eqx.filter_jit(each)(ensemble, batch[0])
    assert_close(got, jax.tree.map(lambda *g: jnp.stack(g), *expected))
