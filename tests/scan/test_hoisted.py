"""`scan.hoisted`: the same steps, and what is left in them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scan

RNG = np.random.default_rng(0)
PARAMETERS = {"w": RNG.normal(size=(3, 2)), "u": RNG.normal(size=(3, 3)), "unused": np.ones(2)}
XS, STATE = RNG.normal(size=(7, 2)), (RNG.normal(size=3), np.ones(()))


def update(p, state, x):
    h, count = state
    scale = jnp.exp(p["w"][0, 0])
    return jnp.tanh(x @ p["w"].T + h @ (scale * p["u"]).T), count + 1


def states(use, parameters, state, xs):
    step = lambda state, x: update(parameters, state, x)  # noqa: E731
    if use:
        step = scan.hoisted(update, parameters, state, xs)
    return scan.sequential(step, state, xs, jnp.arange(7) == 4, initial=state)[1]


def test_values_and_derivatives_are_those_of_the_step():
    def all_of(use):
        def run(*arguments):
            return states(use, *arguments)

        def loss(*arguments):
            return jnp.sum(run(*arguments)[0] ** 2)

        def slope(*arguments):
            gradient = jax.grad(loss, argnums=(0, 2))(*arguments)
            return sum(jnp.sum(jnp.sin(g)) for g in jax.tree.leaves(gradient))

        point = PARAMETERS, STATE, XS
        return jax.jit(
            lambda: (
                run(*point),
                jax.grad(loss, argnums=(0, 1, 2))(*point),
                jax.grad(slope, argnums=(0, 2))(*point),
                jax.jvp(run, point, jax.tree.map(jnp.cos, point)),
                jax.vmap(run, (None, None, 0))(PARAMETERS, STATE, jnp.stack([XS, -XS])),
            )
        )()

    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)  # noqa: E731
    jax.tree.map(close, all_of(True), all_of(False))


@pytest.mark.parametrize(("use", "count"), [(True, 0), (False, 2)])
def test_transposes_are_out_of_the_loop(use, count):
    program = jax.make_jaxpr(lambda *arguments: states(use, *arguments))(PARAMETERS, STATE, XS)
    (loop,) = (e for e in program.eqns if e.primitive.name == "scan")
    names = [e.primitive.name for e in loop.params["jaxpr"].eqns]
    assert names.count("transpose") == count
    assert ("exp" in names) != use


def test_a_step_knows_whether_it_is_traced_for_a_loop():
    """And no longer than that, where the trace fails too."""
    known = []

    def step(parameters, state, x):
        known.append(scan.is_hoisted())
        return state + x

    step(None, 0.0, 1.0)
    scan.hoisted(step, jnp.ones(1), jnp.zeros(()), jnp.ones(3))
    assert known == [False, True]

    def fails(parameters, state, x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        scan.hoisted(fails, jnp.ones(1), jnp.zeros(()), jnp.ones(3))
    assert not scan.is_hoisted()
