"""A user's own monoid: associative, neutral, and the same by loop and tree."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.zoo import examples, forms

CELL = jax.jit(lambda key: examples.Affine(3, 4, key=key))(jax.random.key(0))


@pytest.mark.slow
def test_the_example_is_a_monoid():
    a, b, c = (CELL.lift(x) for x in jax.random.normal(jax.random.key(1), (3, 3)))
    left = CELL.combine(CELL.combine(a, b), c)
    forms.assert_close(left, CELL.combine(a, CELL.combine(b, c)), 1e-12)
    forms.assert_close(CELL.combine(CELL.init_state(), a), a, 1e-12)
    forms.assert_close(CELL.combine(a, CELL.init_state()), a, 1e-12)


def test_loop_and_tree_agree():
    xs = jax.random.normal(jax.random.key(1), (9, 3))
    begin = jnp.arange(9) == 4
    run = lambda method: eqx.filter_jit(  # noqa: E731
        lambda: CELL.scan(CELL.init_state(), xs, begin, method=method)
    )()
    forms.assert_close(run("associative"), run("sequential"), 1e-10)
    of_platform = "sequential" if jax.default_backend() == "cpu" else "associative"
    np.testing.assert_array_equal(run("auto")[1], run(of_platform)[1])
    with pytest.raises(ValueError, match=r"`method` \(='magic'\) must be one of auto, sequential"):
        run("magic")
