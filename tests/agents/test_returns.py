"""Returns and advantages against numbers by hand and a plain loop."""

import jax.numpy as jnp
import numpy as np

from agents.returns import discounted_return, gae, next_values, running_return


def naive_gae(reward, value, next_value, terminated, truncated, discount, gae_lambda):
    advantage = np.zeros_like(reward)
    following = np.zeros_like(reward[0])
    for t in reversed(range(len(reward))):
        delta = reward[t] + discount * (1 - terminated[t]) * next_value[t] - value[t]
        done = np.maximum(terminated[t], truncated[t])
        following = delta + discount * gae_lambda * (1 - done) * following
        advantage[t] = following
    return advantage


def test_gae_by_hand():
    # γ = λ = ½, one environment: δ = (1 + ½·2 - 1, 0 + 0 - 2, 3 + ½·4 - 1) = (1, -2, 4).
    # Step 1 terminates, so A = (1 + ¼·(-2), -2, 4).
    advantage = gae(
        jnp.array([1.0, 0.0, 3.0]),
        jnp.array([1.0, 2.0, 1.0]),
        jnp.array([2.0, 7.0, 4.0]),
        jnp.array([False, True, False]),
        jnp.array([False, False, False]),
        discount=0.5,
        gae_lambda=0.5,
    )
    np.testing.assert_allclose(advantage, [0.5, -2.0, 4.0], atol=1e-15)


def test_gae_equals_the_loop_with_both_ways_to_end():
    rng = np.random.default_rng(0)
    reward, value, following = rng.normal(size=(3, 40, 5))
    terminated, truncated = rng.random((2, 40, 5)) < 0.15
    assert np.any(terminated & truncated)
    got = gae(
        *map(jnp.asarray, (reward, value, following, terminated, truncated)),
        discount=0.97,
        gae_lambda=0.9,
    )
    expected = naive_gae(reward, value, following, terminated, truncated, 0.97, 0.9)
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_a_truncation_bootstraps_and_a_termination_does_not():
    one, zero = jnp.ones(1), jnp.zeros(1)
    yes, no = jnp.array([True]), jnp.array([False])
    options = {"discount": 0.9, "gae_lambda": 0.8}
    assert gae(one, zero, 5 * one, no, yes, **options)[0] == 1 + 0.9 * 5
    assert gae(one, zero, 5 * one, yes, no, **options)[0] == 1
    assert gae(one, zero, 5 * one, yes, yes, **options)[0] == 1


def test_next_values_take_the_final_observation_where_an_episode_ends():
    value = jnp.array([1.0, 2.0, 3.0])
    got = next_values(
        value, jnp.array(4.0), jnp.array([False, True, False]), jnp.array([8.0, 9.0, 8.0])
    )
    np.testing.assert_array_equal(got, [2.0, 9.0, 4.0])


def test_discounted_return_by_hand():
    got = discounted_return(
        jnp.array([1.0, 2.0, 4.0]), jnp.array([False, True, False]), jnp.array(8.0), discount=0.5
    )
    np.testing.assert_array_equal(got, [2.0, 2.0, 8.0])


def test_running_return_by_hand():
    got = running_return(
        jnp.array([1.0, 1.0, 1.0]), jnp.array([False, True, False]), jnp.array(4.0), discount=0.5
    )
    np.testing.assert_array_equal(got, [3.0, 1.0, 1.5])
