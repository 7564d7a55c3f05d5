"""Several of a kind side by side: one is left as it is, and the results are the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents.mapped import mapped


def play(shared, state, key, rows):
    drawn = jax.random.normal(key, rows.shape)
    state = {"sum": state["sum"] + rows.sum(0) * shared, "none": None}
    return state, (drawn, rows * shared)


def given(count):
    keys = jax.random.split(jax.random.key(0), count)
    rows = jnp.arange(6.0 * count).reshape(2, count, 3)
    return jnp.asarray(2.0), {"sum": jnp.ones((count, 3)), "none": None}, keys, rows


@pytest.mark.parametrize("count", [1, 3])
def test_one_and_several_are_what_vmap_makes_of_them(count):
    axes, out_axes = (None, 0, 0, 1), (0, (0, 1))
    found = mapped(play, axes, out_axes)(*given(count))
    expected = jax.vmap(play, axes, out_axes)(*given(count))
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    assert found[1][1].shape == (2, count, 3)


@pytest.mark.parametrize(("count", "shape"), [(1, (3,)), (2, (2, 3))])
def test_the_program_of_one_has_no_axis_for_it(count, shape):
    program = jax.make_jaxpr(mapped(jnp.sin))(jnp.zeros((count, 3)))
    [sine] = [e for e in program.eqns if e.primitive.name == "sin"]
    assert sine.outvars[0].aval.shape == shape


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match="inconsistent sizes"):
        mapped(lambda x, y: x + y)(jnp.zeros((1, 3)), jnp.zeros((2, 3)))
