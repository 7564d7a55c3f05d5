"""MultiarmedBandit by itself: how arms are drawn and pay, and what policies get."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from tests.envs.shuffles import primitives

EPISODES = 4096


@functools.partial(jax.jit, static_argnums=0)
def _play(env, keys, chances, actions):
    params = env.default_params

    def episode(key, chances, actions):
        def step(state, x):
            _, state, reward, *_, info = env.step(x[0], state, x[1], params)
            return state, (info["final_observation"], reward)

        state = env.reset(key, params)[1].replace(chances=chances)
        keys = jax.random.split(key, len(actions))
        state, (seen, rewards) = jax.lax.scan(step, state, (keys, actions))
        return seen, rewards, state.chances

    return jax.vmap(episode)(keys, chances, actions)


def play(env, chances, actions):
    """Observations, rewards and the arms in the end, `[episode, ...]`."""
    keys = jax.random.split(jax.random.key(3), len(actions))
    return jax.device_get(_play(env, keys, chances.astype(np.float32), actions))


def undrawn(arms):
    return np.full((EPISODES, arms), -1)


def mean_and_error(x):
    return np.mean(x, dtype=np.float64), np.std(x, dtype=np.float64) / np.sqrt(len(x))


@pytest.mark.slow
@pytest.mark.parametrize(("arms", "steps"), [(10, 100), (3, 20)])
def test_best_and_random_policy_have_the_expected_return(arms, steps):
    env = envs.MultiarmedBandit(arms, steps)
    rng = np.random.default_rng(0)
    chances = rng.random((EPISODES, arms))
    best = np.repeat(chances.argmax(axis=1)[:, None], steps, axis=1)
    mean, error = mean_and_error(play(env, chances, best)[1].sum(axis=1))
    assert abs(mean - (arms - 1) / (arms + 1)) < 5 * error < 0.05
    random = rng.integers(arms, size=(EPISODES, steps))
    mean, error = mean_and_error(play(env, undrawn(arms), random)[1].sum(axis=1))
    assert abs(mean) < 5 * error < 0.05


@pytest.mark.slow
def test_an_arm_that_always_pays_gives_one():
    env = envs.MultiarmedBandit()
    chances = np.zeros((2, 10))
    chances[0, 7] = 1
    seen, rewards, _ = play(env, chances, np.full((2, 200), 7))
    np.testing.assert_allclose(rewards.sum(axis=1), [1, -1], rtol=1e-5)
    assert (seen[0] == 1).all()
    assert (seen[1] == 0).all()


@pytest.mark.slow
def test_arms_are_drawn_when_they_are_pulled():
    """Uniformly, once in an episode, and each by itself."""
    env = envs.MultiarmedBandit(arms=3, episode_length=5)
    actions = np.tile([0, 1, 0, 1], (EPISODES, 1))
    seen, _, chances = play(env, undrawn(3), actions)
    assert (chances[:, 2] == -1).all()
    drawn = chances[:, :2]
    assert (drawn >= 0).all()
    assert (drawn < 1).all()
    for arm in drawn.T:
        # Kolmogorov's distance exceeds 2 / sqrt(n) once in 1500 samples.
        distance = np.abs(np.sort(arm) - (np.arange(EPISODES) + 0.5) / EPISODES).max()
        assert distance < 2 / np.sqrt(EPISODES)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 5 / np.sqrt(EPISODES)
    paid = seen
    # Two pulls of an arm both pay with the mean of p^2, those of two arms with that of p times q.
    for first, second, law in ((0, 2, 1 / 3), (1, 3, 1 / 3), (0, 1, 1 / 4), (2, 3, 1 / 4)):
        mean, error = mean_and_error(paid[:, first] * paid[:, second])
        assert abs(mean - law) < 5 * error
    # Luck has nothing to do with how the arm was drawn.
    for time, action in enumerate(actions[0]):
        mean, error = mean_and_error(paid[:, time] - drawn[:, action])
        assert abs(mean) < 5 * error
        above = drawn[:, action] > 0.5
        mean, error = mean_and_error((paid[:, time] - drawn[:, action])[above])
        assert abs(mean) < 5 * error


@pytest.mark.slow
def test_a_reset_draws_nothing():
    env = envs.MultiarmedBandit()
    program = jax.make_jaxpr(env.reset)(jax.random.key(0), env.default_params)
    assert "random_bits" not in set(primitives(program.jaxpr))
    _, state = env.reset(jax.random.key(0), env.default_params)
    arguments = jax.random.key(0), state, jnp.int32(0), env.default_params
    assert "random_bits" in set(primitives(jax.make_jaxpr(env.step)(*arguments).jaxpr))
