"""Losses, distributions, normalization and spaces, each alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces

from agents.distributions import Categorical, Gaussian, MultiCategorical
from agents.envs import MultiDiscrete
from agents.losses import clipped_surrogate, standardize, value_loss
from agents.normalization import RunningStatistics
from agents.spaces import encode, is_discrete, width


def test_clipped_surrogate_by_hand():
    ratio = jnp.array([1.5, 0.5, 1.5, 0.5])
    advantage = jnp.array([1.0, 1.0, -1.0, -1.0])
    # Terms of the minimum: 1.2, 0.5, -1.5, -0.8.
    assert clipped_surrogate(ratio, advantage, clip=0.2) == pytest.approx(0.15)


def test_value_loss_with_and_without_clipping():
    value, old, target = jnp.array([2.0]), jnp.array([0.0]), jnp.array([3.0])
    assert value_loss(value, old, target, clip=None) == 0.5
    assert value_loss(value, old, target, clip=1.0) == 2.0


def test_standardize():
    x = standardize(jnp.array([1.0, 2.0, 6.0]))
    assert abs(float(x.mean())) < 1e-12 and float(x.std()) == pytest.approx(1, abs=1e-7)


def test_categorical_against_its_probabilities():
    logits = jnp.array([[0.3, -1.0, 2.0], [0.0, 0.0, 0.0]])
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    policy = Categorical(logits)
    np.testing.assert_allclose(policy.log_prob(jnp.array([2, 0])), np.log(p[[0, 1], [2, 0]]))
    np.testing.assert_allclose(policy.entropy(), -(p * np.log(p)).sum(-1))
    np.testing.assert_array_equal(policy.mode(), [2, 0])
    draws = jax.vmap(policy.sample)(jax.random.split(jax.random.key(0), 20_000))
    frequency = np.mean(np.asarray(draws)[..., None] == np.arange(3), 0)
    np.testing.assert_allclose(frequency, p, atol=0.015)


@pytest.mark.slow
def test_several_categoricals_against_all_their_values():
    nvec = (2, 1, 3)
    logits = jnp.array([[0.3, -1.0, 5.0, 2.0, 0.1, 0.7], [0.0, 1.0, -2.0, 0.0, 0.5, 0.0]])
    policy = MultiCategorical(logits, nvec)
    first, second, third = (np.asarray(part) for part in np.split(logits, [2, 3], axis=-1))
    weights = np.exp(first[:, :, None, None] + second[:, None, :, None] + third[:, None, None, :])
    p = weights / weights.sum((1, 2, 3), keepdims=True)  # of every action, for both rows
    actions = np.array([[action, action] for action in np.ndindex(nvec)])

    @jax.jit
    def everything(policy, actions, key):
        draws = jax.vmap(policy.sample)(jax.random.split(key, 20_000))
        return jax.vmap(policy.log_prob)(actions), policy.entropy(), policy.mode(), draws

    log_probs, entropy, mode, draws = map(
        np.asarray, everything(policy, jnp.asarray(actions), jax.random.key(0))
    )
    np.testing.assert_allclose(log_probs, np.log(p).reshape(2, -1).T, rtol=1e-12)
    np.testing.assert_allclose(entropy, -(p * np.log(p)).sum((1, 2, 3)), rtol=1e-12)
    best = [np.unravel_index(row.argmax(), nvec) for row in p]
    np.testing.assert_array_equal(mode, best)
    # The joint frequency: also that the numbers are independent of each other.
    for row in range(2):
        count = np.zeros(nvec)
        np.add.at(count, tuple(draws[:, row].T), 1)
        error = 4.5 * np.sqrt(p[row] * (1 - p[row]) / len(draws))
        assert (np.abs(count / len(draws) - p[row]) < error).all()


@pytest.mark.slow
def test_gaussian_against_scipy():
    mean, log_std = jnp.array([0.5, -1.0]), jnp.array([0.2, -0.3])
    policy = Gaussian(mean, log_std)
    action = jnp.array([0.1, 0.4])
    expected = jax.scipy.stats.norm.logpdf(action, mean, jnp.exp(log_std)).sum()
    np.testing.assert_allclose(policy.log_prob(action), expected, rtol=1e-12)
    draws = jax.vmap(policy.sample)(jax.random.split(jax.random.key(0), 20_000))
    np.testing.assert_allclose(draws.std(0), np.exp(log_std), rtol=0.02)
    np.testing.assert_allclose(-jnp.mean(jax.vmap(policy.log_prob)(draws)), policy.entropy(), 0.02)


@pytest.mark.parametrize("envs", [1, 7])
def test_statistics_are_per_feature_whatever_the_number_of_environments(envs):
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(30, envs, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, -1.0]
    flat = samples.reshape(-1, 3)

    @jax.jit
    def update(pieces, flat):
        start = RunningStatistics.init((3,))
        end, _ = jax.lax.scan(lambda now, piece: (now.update(piece), None), start, pieces)
        return end, jax.vmap(end.normalize)(flat)

    pieces = samples.reshape(5, 6, envs, 3)
    statistics, normalized = update(jnp.asarray(pieces), jnp.asarray(flat))
    np.testing.assert_allclose(statistics.mean, flat.mean(0), rtol=1e-10)
    np.testing.assert_allclose(statistics.variance, flat.var(0), rtol=1e-10)
    np.testing.assert_allclose(np.std(normalized, 0), 1, rtol=1e-5)


def test_encoding_of_spaces():
    assert width(spaces.Discrete(4)) == 4
    np.testing.assert_array_equal(encode(spaces.Discrete(4), jnp.int32(2)), [0, 0, 1, 0])
    box = spaces.Box(0, 1, (2, 3))
    assert width(box) == 6 and encode(box, jnp.ones((2, 3))).shape == (6,)
    both = spaces.Tuple((spaces.Discrete(2), box))
    np.testing.assert_array_equal(encode(both, (jnp.int32(1), jnp.ones((2, 3)))), [0, *[1] * 7])
    assert is_discrete(spaces.Discrete(2)) and not is_discrete(box)
    two = MultiDiscrete([2, 3])
    assert width(two) == 5 and is_discrete(two)
    np.testing.assert_array_equal(encode(two, jnp.array([1, 0])), [0, 1, 1, 0, 0])


def test_unknown_spaces_are_named():
    with pytest.raises(TypeError, match=r"`space` \(=3\) must be Discrete, MultiDiscrete, Box"):
        width(3)
    with pytest.raises(TypeError, match=r"`action_space` .* must be Discrete, MultiDiscrete or"):
        is_discrete(spaces.Tuple((spaces.Discrete(2),)))
