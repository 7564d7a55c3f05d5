"""The linear RTU against numbers worked by hand, and the size of its sensitivity."""

import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import zoo
from tests.cases import CellCase
from tests.zoo import forms
from zoo.proofs import plain_loop

# n = d = 1, r = 1/2, θ = π/2, W1 = 1, W2 = 0 and x = 1, 1, 1: [t, (h1, h2)].
STATE = [[0.86603, 0], [0.86603, 0.43301], [0.64952, 0.43301]]
DERIVATIVES = {
    "w1": STATE,
    "w2": [[0, 0.86603], [-0.43301, 0.86603], [-0.43301, 0.64952]],
    "nu": [[0.20009, 0], [0.20009, -0.20009], [0.45021, -0.20009]],
    "theta": [[0, 0], [-0.68017, 0], [-0.68017, -0.68017]],
}
XS = jnp.ones((3, 1))


def by_hand():
    cell = zoo.RTU(1, 1, activation="identity", key=jax.random.key(0))
    values = [math.log(math.log(2)), math.log(math.pi / 2), 1.0, 0.0]
    p = cell.parameters
    return eqx.tree_at(
        lambda c: [c.parameters.nu, c.parameters.theta, c.parameters.w1, c.parameters.w2],
        cell,
        [jnp.full(x.shape, v) for x, v in zip((p.nu, p.theta, p.w1, p.w2), values, strict=True)],
    )


def outputs(form, cell):
    if form == "rtrl_step":
        carry, ys = (cell.init_state(), cell.rtrl_init()), []
        for x in XS:
            carry, y = cell.rtrl_step(carry, x)
            ys.append(y)
        return jnp.stack(ys)
    if form == "rtrl_scan":
        carry, first = cell.rtrl_scan((cell.init_state(), cell.rtrl_init()), XS[:2])
        return jnp.concatenate([first, cell.rtrl_scan(carry, XS[2:])[1]])
    if form == "scan":
        return cell.scan(cell.init_state(), XS)[1]
    none = jnp.zeros(3, bool)
    return plain_loop(cell, cell.init_state(), XS, none)[1]


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("form", ["rtrl_scan", "loop", "scan", "rtrl_step"])
def test_worked_by_hand(form):
    cell = by_hand()
    values, jacobian = jax.jit(
        lambda cell: (outputs(form, cell), jax.jacrev(lambda c: outputs(form, c))(cell))
    )(cell)
    np.testing.assert_allclose(values, STATE, atol=6e-6)
    for name, expected in DERIVATIVES.items():
        got = getattr(jacobian.parameters, name).reshape(3, 2)
        np.testing.assert_allclose(got, expected, atol=6e-6, err_msg=name)


def test_one_complex_trace_serves_both_input_matrices(float32):
    cell = zoo.get("rtu", hidden=96, inputs=64)
    leaves = jax.tree.leaves(cell.rtrl_init())
    assert sum(leaf.nbytes for leaf in leaves) <= 51_000
    real_and_imaginary = [(96,), (96,), (96, 64), (96, 64)]
    assert sorted(leaf.shape for leaf in leaves) == real_and_imaginary
    assert all(leaf.dtype == jnp.float32 for leaf in leaves)


def test_it_is_a_complex_recurrence():
    """The real pair of the paper, written out."""
    case = CellCase("identity", functools.partial(zoo.RTU, activation="identity"))
    cell, (state, _), xs, _ = forms.problem(case, 4)
    p = cell.parameters
    r, theta = np.exp(-np.exp(p.nu)), np.exp(p.theta)
    g, phi, gamma = r * np.cos(theta), r * np.sin(theta), np.sqrt(1 - r**2)
    h1, h2 = np.real(state), np.imag(state)
    _, ys = cell.scan(jnp.asarray(state), jnp.asarray(xs))
    for x, y in zip(xs, ys, strict=True):
        h1, h2 = g * h1 - phi * h2 + gamma * (p.w1 @ x), g * h2 + phi * h1 + gamma * (p.w2 @ x)
        np.testing.assert_allclose(y, np.concatenate([h1, h2]), rtol=1e-11, atol=1e-12)


def test_nonlinear_equations():
    cell = zoo.NonlinearRTU(2, 3, key=jax.random.key(2))
    p = cell.parameters
    r, theta = np.exp(-np.exp(p.nu)), np.exp(p.theta)
    g, phi, gamma = r * np.cos(theta), r * np.sin(theta), np.sqrt(1 - r**2)
    h1 = h2 = np.zeros(3)
    xs = np.random.default_rng(0).normal(size=(6, 2))
    _, ys = cell.scan(cell.init_state(), jnp.asarray(xs))
    for x, y in zip(xs, ys, strict=True):
        a1, a2 = g * h1 - phi * h2 + gamma * (p.w1 @ x), g * h2 + phi * h1 + gamma * (p.w2 @ x)
        h1, h2 = np.tanh(a1), np.tanh(a2)
        np.testing.assert_allclose(y, np.concatenate([h1, h2]), rtol=1e-11, atol=1e-12)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("phase", ["exp", "direct"])
@pytest.mark.parametrize("modulus", ["exp_exp", "exp", "sigmoid", "direct"])
def test_parameterisations_start_the_same_and_are_normalized(modulus, phase):
    options = {"modulus": modulus, "phase": phase, "r_min": 0.1, "r_max": 0.99}
    for kind in (zoo.RTU, zoo.NonlinearRTU):
        default = kind(2, 5, r_min=0.1, r_max=0.99, key=jax.random.key(0)).parameters.rotation()
        cell = kind(2, 5, **options, key=jax.random.key(0))
        g, phi, gamma = cell.parameters.rotation()
        for one, other in zip((g, phi, gamma), default, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        np.testing.assert_allclose(g**2 + phi**2 + gamma**2, 1, rtol=1e-9)


def test_a_modulus_that_is_learned_directly_stays_below_one():
    cell = zoo.RTU(2, 3, modulus="direct", key=jax.random.key(0))
    cell = eqx.tree_at(lambda c: c.parameters.nu, cell, jnp.array([-1.0, 1.0, 5.0]))
    g, phi, gamma = cell.parameters.rotation()
    r = np.sqrt(g**2 + phi**2)
    assert r[0] == 0 and np.all(r < 1) and np.all(gamma > 0)
    with pytest.raises(ValueError, match=r"`modulus` \(='tanh'\) must be one of exp_exp, exp"):
        zoo.get("rtu", hidden=3, modulus="tanh")
    with pytest.raises(ValueError, match=r"`phase` \(='log'\) must be one of exp, direct"):
        zoo.get("rtu", hidden=3, phase="log")
