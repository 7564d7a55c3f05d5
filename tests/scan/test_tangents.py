"""A value with a rule for its derivative: its own tangent, batches of either, and loops around."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scan.tangents import with_tangent

P, X = jnp.array([0.5, -0.3]), jnp.array([2.0, 3.0])


def cubed(value, arguments, tangents):
    """As if the value were `p³` besides, of the first argument alone."""
    (p, count), ((of_p,), (of_count,)) = arguments, tangents
    assert of_count is None and count.dtype == jnp.int32
    return 3 * p**2 * of_p


def supplied(x, p):
    return with_tangent(cubed, jnp.sin(x), p, jnp.int32(1))


def plain(x, p):
    return jnp.sin(x) + p**3 - jax.lax.stop_gradient(p**3)


def assert_close(found, expected):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), found, expected)


def loss(function):
    return lambda x, p: jnp.sum(jnp.exp(function(x, p)) * jnp.arange(1, 3))


@pytest.mark.parametrize("wanted", [0, 1, (0, 1)], ids=str)
def test_its_tangent_is_its_own_and_the_rules(wanted):
    ours, theirs = (
        jax.jit(lambda f=f: (jax.grad(loss(f), wanted)(X, P), jax.hessian(loss(f), wanted)(X, P)))
        for f in (supplied, plain)
    )
    assert_close(ours(), theirs())


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (1, 0), (0, 1)], ids=str)
def test_either_may_have_a_batch(axes):
    def batch(x, axis):
        return x if axis is None else jnp.stack([x, 2 * x, -x], axis)

    def of(function):
        all_of = jax.vmap(loss(function), axes)
        gradient = jax.grad(lambda x, p: jnp.sum(all_of(x, p) ** 2), (0, 1))
        many = batch(X, axes[0]), batch(P, axes[1])
        return jax.jit(lambda: (all_of(*many), gradient(*many), jax.jacfwd(gradient)(*many)))()

    assert_close(of(supplied), of(plain))


def test_a_loop_around_it_keeps_the_rule():
    def of(function):
        def total(p):
            step = lambda x, _: (function(x, p), jnp.sum(jnp.exp(x)))  # noqa: E731
            return jnp.sum(jax.lax.scan(step, X, None, length=3)[1])

        return jax.jit(lambda: (jax.grad(total)(P), jax.hessian(total)(P)))()

    assert_close(of(supplied), of(plain))
