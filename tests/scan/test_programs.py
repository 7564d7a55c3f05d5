"""Steps that do more than compute, or that JAX has as one equation: nothing of them is lost."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import rtrl
import scan
import zoo
from scan.programs import apart, is_plain, needed, one_of
from tests.scan.test_nonlinear import taken_by
from tests.zoo.examples import spike

H, XS = jnp.full(2, 0.5), jnp.linspace(0, 1, 6).reshape(3, 2)


@pytest.mark.parametrize("coupling", ["units", "dense"])
@pytest.mark.parametrize("ordered", [False, True])
def test_effects_of_a_step_stay(coupling, ordered):
    seen = []

    def update(p, h, x):
        io_callback(lambda x: seen.append(float(x)), None, x[0], ordered=ordered)
        return jnp.tanh(p * h + x)

    # Nothing that is computed is used.
    jax.jit(lambda p: (scan.nonlinear(update, p, H, XS, coupling=coupling), 1.0)[1])(H)
    jax.effects_barrier()
    assert sorted(seen) == list(np.asarray(XS[:, 0]))


def test_sums_over_a_batch_are_of_its_axis():
    def update(p, h, x):
        return jnp.tanh(p * h + jax.lax.pmean(x, "batch"))

    batch = jnp.stack([XS, -XS, XS])
    run = jax.vmap(lambda xs: scan.nonlinear(update, H, H, xs), axis_name="batch")
    expected = scan.nonlinear(lambda p, h, x: jnp.tanh(p * h + x), H, H, XS / 3)
    for got in jax.jit(run)(batch):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("coupling", ["units", "dense"])
def test_derivatives_of_sums_over_a_batch_are_those_of_the_loop(coupling):
    """Of states too, which no sequence's own Jacobian has."""

    def update(p, h, x):
        return jnp.tanh(p * h + x + 0.3 * jax.lax.pmean(h, "batch"))

    def value(solve, p, xs):
        solve_all = jax.vmap(lambda xs: solve(p, xs), axis_name="batch")
        return jnp.sum(jnp.sin(solve_all(xs)) * xs)

    def ours(p, xs):
        return scan.nonlinear(update, p, H, xs, coupling=coupling)

    def loop(p, xs):
        return jax.lax.scan(lambda h, x: (update(p, h, x),) * 2, H, xs)[1]

    given = H, jnp.stack([XS, -XS, 2 * XS])
    for differentiate in (jax.grad, jax.jacfwd):
        found, expected = (
            jax.jit(differentiate(partial(value, solve), (0, 1)))(*given) for solve in (ours, loop)
        )
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)
    with pytest.raises(ValueError, match=r"`update` acts over an axis that a `jax.vmap`"):
        value(lambda p, xs: scan.newton(update, p, H, xs)[0], *given)


def test_a_parameter_that_is_printed_is_needed():
    def update(p, h):
        jax.debug.print("{}", p)
        return h

    assert needed(jax.make_jaxpr(update)(1.0, 2.0).jaxpr) == [True, True]


def test_what_is_of_parameters_alone_has_no_copy_for_every_step():
    """Not in a `jit` of its own either, as most functions of `jax.numpy` are."""

    @jax.jit
    def step(w, h, x):
        return jnp.tanh((w / jnp.linalg.norm(w)).T @ h + x)

    def pullback(w, h, x):
        return jax.vjp(lambda h: step(w, h, x), h)[1]

    w, hs, xs = jnp.eye(2) + 0.1, jnp.ones((3, 2)), XS
    join, varying = apart(pullback, w, hs, xs)
    assert all(leaf.shape == (3, 2) for leaf in varying)
    for t in range(3):
        (got,) = join(one := [leaf[t] for leaf in varying])(H)
        np.testing.assert_allclose(got, pullback(w, hs[t], xs[t])(H)[0], rtol=1e-12)
        assert jax.tree.map(jnp.shape, one_of(varying)) == jax.tree.map(jnp.shape, one)


def test_products_that_expand_stay_in_the_loop():
    def update(p, h, x):
        return jnp.tanh(p @ h + jnp.sum(x[:, None] @ x[None], 0)[:2])

    _, drives = scan.ahead(update, jnp.eye(2), H, jnp.ones((4, 30)))
    assert [d.shape for d in drives] == [(4, 30)]


def test_a_scan_of_any_number_of_steps_is_exported_for_a_gpu():
    (time,) = jax.export.symbolic_shape("time")
    run = jax.jit(lambda xs: scan.nonlinear(lambda p, h, x: jnp.tanh(p * h + x), H, H, xs))
    xs = jax.ShapeDtypeStruct((time, 2), H.dtype)
    assert jax.export.export(run, platforms=["cuda"])(xs).out_avals[0].shape == (time, 2)


class Spiking(zoo.AbstractDenseCell):
    """A step with a rule for reverse mode of its own, which forward mode cannot go through."""

    u: jax.Array
    inputs: int = 2
    hidden: int = 2
    sensitivity: rtrl.AbstractSensitivity = rtrl.Exact()

    def transition(self, state, x, recurrent):
        return spike(recurrent(self.u, state)[:, 0] + x)

    def readout(self, state, x):
        return state


def test_a_dense_cell_with_a_rule_of_its_own_goes_step_by_step(monkeypatch):
    """So that derivatives do not depend on the platform."""
    taken_by("default", monkeypatch)

    def slope(method, u):
        cell = Spiking(u)
        return jnp.sum(
            jnp.sin(1 + cell.scan(H, XS, method=method)[1]) * jnp.arange(6.0).reshape(3, 2)
        )

    u = jnp.array([[[0.3, -0.2]], [[0.1, 0.4]]])
    second = [
        jax.grad(lambda u, m=m: jnp.sum(jax.grad(partial(slope, m))(u) ** 2))
        for m in ("auto", "sequential")
    ]
    np.testing.assert_allclose(second[0](u), second[1](u), rtol=1e-12)
    plain = lambda p, h, x: p * h + x  # noqa: E731
    assert is_plain(plain, H, H, XS)
    assert not is_plain(lambda p, h, x: spike(p * h + x), H, H, XS)
