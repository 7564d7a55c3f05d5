"""The cells that memax defines as we do, with its own code for scans and resets."""

import equinox as eqx
import jax
import jax.numpy as jnp
import memax.equinox.semigroups.lru as memax_lru
import memax.equinox.set_actions.mgu as memax_mgu
import numpy as np
import pytest

import zoo
from tests.zoo import forms

TIME, WIDTH = 50, 5  # its annotations of the LRU ask for as many units as inputs


def problem():
    rng = np.random.default_rng(0)
    xs = jnp.asarray(rng.normal(size=(TIME, WIDTH)), jnp.float32)
    return xs, jnp.asarray(rng.random(TIME) < 0.1)


@eqx.filter_jit
def theirs(model, xs, begin):
    """Outputs and their gradient, from the beginning of an episode."""

    def loss(xs):
        _, ys = model(model.initialize_carry(), (xs, begin))
        return jnp.sum(jnp.sin(ys)), ys

    (_, ys), gradient = jax.value_and_grad(loss, has_aux=True)(xs)
    return ys, gradient


@eqx.filter_jit
def ours(cell, xs, begin):
    def loss(xs):
        _, ys = cell.scan(cell.init_state(), xs, begin)
        return jnp.sum(jnp.sin(ys)), ys

    (_, ys), gradient = jax.value_and_grad(loss, has_aux=True)(xs)
    return ys, gradient


@pytest.mark.slow
def test_lru(float32):
    other = eqx.filter_jit(memax_lru.LRU)(WIDTH, WIDTH, key=jax.random.key(0))
    cell = zoo.LRU(WIDTH, WIDTH, key=jax.random.key(1))
    names = {"B_re": "b_real", "B_im": "b_imag", "C_re": "c_real", "C_im": "c_imag", "D": "d"}
    names |= {name: name for name in ("nu_log", "theta_log", "gamma_log")}
    for their_name, name in names.items():
        weights = getattr(other, their_name)
        cell = eqx.tree_at(lambda c, name=name: getattr(c, name), cell, weights)
    forms.assert_close(ours(cell, *problem()), theirs(other, *problem()), 2e-5)


@pytest.mark.slow
def test_mgu(float32):
    other = eqx.filter_jit(memax_mgu.MGU)(WIDTH, key=jax.random.key(0))
    cell = zoo.MGU(WIDTH, WIDTH, key=jax.random.key(1))
    gates = other.algebra.algebra
    cell = eqx.tree_at(
        lambda c: (c.w, c.u_f, c.u_n, c.b),
        cell,
        (
            jnp.stack([gates.W_f.weight, gates.W_h.weight], 1),
            gates.U_f.weight[:, None],
            gates.U_h.weight[:, None],
            jnp.stack([gates.W_f.bias, gates.W_h.bias], 1),
        ),
    )
    forms.assert_close(ours(cell, *problem()), theirs(other, *problem()), 2e-5)
