"""What values are learned towards, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents.learning.losses import masked_mean
from agents.learning.targets import bootstrapped, next_action_value, polyak


def test_a_target_bootstraps_unless_the_episode_was_terminated():
    reward, following = jnp.array([1.0, 1.0]), jnp.array([4.0, jnp.nan])
    got = bootstrapped(reward, jnp.array([False, True]), following, discount=0.5)
    np.testing.assert_array_equal(got, [3.0, 1.0])


def test_a_target_of_values_with_another_axis_is_refused(unhooked):
    """They would broadcast to a target for every pair."""
    reward, ends = jnp.ones(3), jnp.zeros(3, bool)
    with pytest.raises(ValueError, match=r"`next_value` \(shape \(3, 1\)\) must have the shape of"):
        bootstrapped(reward, ends, jnp.ones((3, 1)), discount=0.5)


@pytest.mark.parametrize(("double", "expected"), [(True, [20.0, 30.0]), (False, [40.0, 30.0])])
def test_one_network_chooses_and_the_other_values(double, expected):
    online = jnp.array([[1.0, 3.0, 2.0], [5.0, 4.0, 3.0]])
    target = jnp.array([[40.0, 20.0, 10.0], [30.0, 20.0, 10.0]])
    np.testing.assert_array_equal(next_action_value(online, target, double=double), expected)


def test_a_target_keeps_its_share_and_what_is_no_number():
    got = polyak((jnp.array([1.0, 2.0]), "spec", 3), (jnp.array([5.0, 2.0]), "spec", 3), kept=0.75)
    np.testing.assert_array_equal(got[0], [2.0, 2.0])
    assert got[1:] == ("spec", 3)


def test_networks_that_differ_are_not_mixed():
    one, other = {"w": np.ones((2, 3))}, {"w": np.ones(3)}
    with pytest.raises(ValueError, match=r"whose leaf \['w'\] has shape \(2, 3\)\) must"):
        polyak(one, other, kept=0.5)
    with pytest.raises(ValueError, match=r"`target` \(=PyTr.* built like `online` \(=PyTr"):
        polyak(one, {"v": other["w"]}, kept=0.5)
    with pytest.raises(ValueError, match=r"`kept` \(=1.5\) must be in \[0, 1\]"):
        polyak(one, one, kept=1.5)


def test_what_is_masked_is_not_read():
    x, mask = jnp.array([1.0, jnp.nan, 3.0]), jnp.array([True, False, True])
    value, gradient = jax.value_and_grad(masked_mean)(x, mask)
    assert value == 2
    np.testing.assert_array_equal(gradient, [0.5, 0, 0.5])
    assert masked_mean(x, jnp.zeros(3, bool)) == 0
