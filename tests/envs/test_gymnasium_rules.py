"""What an environment of gymnasium must be and return, and the actions that it gets."""

import re

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from agents import envs
from agents.envs import wrappers
from agents.envs.wrappers.base import check_end


class Told(gymnasium.Env):
    """Returns what it is told, and keeps its actions, which must be of its space."""

    action_space = spaces.Discrete(2)

    def __init__(self, first=(0.0, 0.0), then=(0.0, 0.0), reward=1.0, action_space=None, seen=None):
        self.observation_space = spaces.Box(-1, 1, (2,))
        self.action_space = action_space or self.action_space
        self.told, self.seen = (first, then, reward), seen

    def reset(self, *, seed=None, options=None):
        return np.asarray(self.told[0]), {}

    def step(self, action):
        if self.seen is not None:
            assert self.action_space.contains(action)
            self.seen.append(action)
        return np.asarray(self.told[1]), self.told[2], False, False, {}


@pytest.mark.parametrize(
    ("space", "given", "expected"),
    [
        (spaces.Box(-5, 5, (4,), np.int64), [4.9, -0.9, 0.4, 7.0], [5, -1, 0, 5]),
        (spaces.Box(0, 255, (2,), np.uint8), [254.6, -3.0], [255, 0]),
        (spaces.Box(-0.1, 0.1, (2,), np.float64), [0.1, -0.1], [0.1, -0.1]),
        (spaces.Box(-np.inf, 0.1, (2,), np.float32), [-9.5, 0.3], [-9.5, np.float32(0.1)]),
    ],
    ids=str,
)
def test_actions_of_a_box_are_the_nearest_of_its_space(space, given, expected):
    """Of whole numbers too; and float32(0.1) is more than 0.1."""
    seen = []
    env, params = envs.from_gymnasium(lambda: Told(action_space=space, seen=seen))
    _, state = env.reset(jax.random.key(0), params)
    env.step(jax.random.key(0), state, np.float32(given), params)[2].block_until_ready()
    np.testing.assert_array_equal(seen[0], np.array(expected, space.dtype))
    assert seen[0].dtype == space.dtype


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"first": (0.0, 0.0, 0.0)}, r"`reset` returns an observation of shape \(3,\)"),
        ({"then": (0.0,)}, r"`step` returns an observation of shape \(1,\) .* of shape \(2,\)"),
        ({"then": (None, 0.0)}, r"`step` returns an observation .* dtype object"),
        ({"reward": np.ones(1)}, r"`step` returns the reward .* must be one number"),
        ({"reward": None}, r"`step` returns the reward None; it must be one number"),
    ],
)
def test_what_an_environment_returns_is_told_by_its_name(told, message):
    env, params = envs.from_gymnasium(lambda: Told(**told))
    with pytest.raises(RuntimeError, match=rf"`env` \(=Told\): {message}"):
        _, state = jax.block_until_ready(env.reset(jax.random.key(0), params))
        jax.block_until_ready(env.step(jax.random.key(0), state, 0, params))


class Unlucky(Told):
    """Cannot be made."""

    def __init__(self, size=1):
        raise KeyError(size)


def test_what_makes_no_environment_is_told_when_it_is_given():
    one = Told()
    gymnasium.register("UnluckyOfTheTests-v0", Unlucky)
    for make, error, message in (
        (lambda: one, ValueError, r"`env` \(=<function.*must make another environment at each"),
        (lambda: None, TypeError, r"`env` \(=<function.*must make a gymnasium.Env, and made None"),
        (lambda: gymnasium.make_vec("CartPole-v1", 3), TypeError, r"must make a gymnasium.Env"),
    ):
        with pytest.raises(error, match=message):
            envs.from_gymnasium(make)
    message = "`env` (='UnluckyOfTheTests-v0') cannot be made with size=9: KeyError: 9"
    with pytest.raises(ValueError, match=re.escape(message)):
        envs.from_gymnasium("UnluckyOfTheTests-v0", size=9)


def test_a_time_limit_is_asked_for_where_episodes_are_played_whole():
    env, params = envs.from_gymnasium(Told)
    with pytest.raises(ValueError, match=r"`env` \(=gymnasium/Told\) must have a time limit"):
        check_end(wrappers.Log(env))
    check_end(envs.from_gymnasium(Told, max_steps_in_episode=3)[0])
    check_end(envs.make("t_maze")[0])
    with pytest.raises(ValueError, match=r"`max_steps_in_episode` \(=3\) must be 1000000000, whi"):
        env.reset(jax.random.key(0), params.replace(max_steps_in_episode=jnp.int32(3)))
