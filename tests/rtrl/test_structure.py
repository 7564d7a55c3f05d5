"""What a sensitivity starts as: its precision, and states that have none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rtrl


def leak(parameters, state, x):
    """More precise than its parameters in bfloat16."""
    a, w = (parameters[name].astype(state.dtype) for name in "aw")
    return a * state + w * x


@pytest.mark.parametrize("structure", [rtrl.Dense(), rtrl.Diagonal(), rtrl.UORO()], ids=repr)
def test_a_sensitivity_is_as_precise_as_the_state(structure):
    parameters = {"a": jnp.full(1, 0.996, jnp.bfloat16), "w": jnp.full(1, 0.5, jnp.bfloat16)}
    state, one = jnp.zeros(1, jnp.float32), jnp.ones(1, jnp.float32)

    def run(parameters, state, x, begin):
        return leak(parameters, state, x)

    @jax.jit
    def tangent_after_many_steps(parameters):
        def step(carry, _):
            state, sensitivity = carry
            sensitivity = rtrl.roll(structure, run, parameters, state, sensitivity, one, None)
            return (leak(parameters, state, one), sensitivity), None

        start = state, rtrl.init(structure, leak, parameters, state, one)
        (end, sensitivity), _ = jax.lax.scan(step, start, length=1_000)
        return structure.jvp(sensitivity, jax.tree.map(jnp.ones_like, parameters), end)

    # In bfloat16 ones no longer count in a sum of 256; the terms are rounded once.
    exact = tangent_after_many_steps(jax.tree.map(lambda p: p.astype(state.dtype), parameters))
    np.testing.assert_allclose(tangent_after_many_steps(parameters), exact, rtol=2e-3)


@pytest.mark.parametrize("structure", [rtrl.Diagonal, "diagonal", None])
def test_what_is_no_structure_is_named(structure, unhooked):
    with pytest.raises(TypeError, match=r"`structure` \(=.*\) must be one, such as rtrl\.Diagonal"):
        rtrl.init(structure, lambda p, h, x: p * h, jnp.ones(3), jnp.ones(3), jnp.ones(3))


@pytest.mark.parametrize("structure", [rtrl.Dense(), rtrl.Diagonal()], ids=repr)
def test_a_state_of_whole_numbers_that_become_others_is_refused(structure):
    parameters = {"a": jnp.ones(3), "w": jnp.ones(3)}
    update = lambda p, h, x: p["a"] * h + p["w"] * x  # noqa: E731
    with pytest.raises(TypeError, match=r"`state` \(=int\d+\[3\]\) must be floating-point"):
        rtrl.init(structure, update, parameters, jnp.zeros(3, int), jnp.ones(3))
    with pytest.raises(ValueError, match=r"`update` returns float\d+\[3\].*float\d+\[1\]"):
        rtrl.init(structure, update, parameters, jnp.zeros(1), jnp.ones(3))
