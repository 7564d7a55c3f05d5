"""The other cells against independent implementations of their equations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import zoo


def gates_first(parameter):
    """`[hidden, gates, ...]` as `[gates × hidden, ...]`, which Equinox has."""
    return jnp.moveaxis(parameter, 1, 0).reshape(-1, *parameter.shape[2:])


@pytest.mark.slow
def test_gru_is_that_of_equinox():
    ours = zoo.GRU(3, 4, key=jax.random.key(0))
    theirs = eqx.tree_at(
        lambda c: (c.weight_ih, c.weight_hh, c.bias, c.bias_n),
        eqx.nn.GRUCell(3, 4, key=jax.random.key(1)),
        (*(gates_first(p) for p in (ours.w, ours.u, ours.b)), ours.b_u),
    )
    rng = np.random.default_rng(0)
    xs, state = jnp.asarray(rng.normal(size=(6, 3))), jnp.asarray(rng.normal(size=4))

    def their_scan(cell):
        step = lambda h, x: (cell(x, h),) * 2  # noqa: E731
        return jax.lax.scan(step, state, xs)[1]

    expected, pullback = jax.vjp(their_scan, theirs)
    got, our_pullback = jax.vjp(lambda c: c.scan(state, xs)[1], ours)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    weights = jnp.asarray(rng.normal(size=got.shape))
    g, e = our_pullback(weights)[0], pullback(weights)[0]
    pairs = ((g.w, e.weight_ih), (g.u, e.weight_hh), (g.b, e.bias))
    for mine, other in (*((gates_first(a), b) for a, b in pairs), (g.b_u, e.bias_n)):
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_lru_equations():
    for outputs in (3, 5):
        cell = zoo.LRU(3, 4, outputs=outputs, key=jax.random.key(outputs))
        assert (cell.d is None) == (outputs != 3) and cell.outputs == outputs
        eigenvalues = np.exp(-np.exp(cell.nu_log) + 1j * np.exp(cell.theta_log))
        b, c = (np.asarray(re) + 1j * im for re, im in (
            (cell.b_real, cell.b_imag), (cell.c_real, cell.c_imag)))  # fmt: skip
        xs = np.random.default_rng(0).normal(size=(6, 3))
        _, ys = cell.scan(cell.init_state(), jnp.asarray(xs))
        h = np.zeros(4, complex)
        for x, y in zip(xs, ys, strict=True):
            h = eigenvalues * h + np.exp(cell.gamma_log) * (b @ x)
            expected = np.real(c @ h) + (0 if cell.d is None else cell.d * x)
            np.testing.assert_allclose(y, expected, rtol=1e-11, atol=1e-12)


def test_mlp_has_no_memory():
    cell = zoo.MLP(3, 4, activation="tanh", key=jax.random.key(0))
    xs = np.random.default_rng(0).normal(size=(5, 3))
    state, ys = cell.scan(cell.init_state(), jnp.asarray(xs))
    assert state == () and cell.state_size == 0
    np.testing.assert_allclose(
        ys, np.tanh(xs @ np.asarray(cell.w).T + np.asarray(cell.b)), rtol=1e-12
    )
