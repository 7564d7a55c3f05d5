"""A small environment for the tests of wrappers: short episodes that end in both ways."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import Environment, EnvParams, EnvState

ENVS, STEPS = 2, 60


@struct.dataclass
class WalkState(EnvState):
    time: Any
    position: Any


class Walk(Environment):
    """A random walk of 3 numbers, pushed by the action; it ends where the first is above 1.

    Observations are the numbers, `(3,)`; in a frame of shape `(2, 3, 1)`; as bytes, of the same
    shape; or in parts, a dictionary of a discrete number and a vector.
    """

    def __init__(self, form: str = "vector", discrete: bool = True):
        super().__init__()
        self.form, self.discrete = form, discrete

    @property
    def default_params(self):
        return EnvParams(max_steps_in_episode=9)

    @property
    def num_actions(self):
        return 3 if self.discrete else 2

    def action_space(self, params):
        return spaces.Discrete(3) if self.discrete else spaces.Box(-1.0, 1.0, (2,))

    def observation_space(self, params):
        if self.form == "parts":
            return spaces.Dict({"sign": spaces.Discrete(2), "at": spaces.Box(-9.0, 9.0, (3,))})
        if self.form == "bytes":
            return spaces.Box(0, 255, (2, 3, 1), jnp.uint8)
        shape = {"vector": (3,), "frame": (2, 3, 1)}[self.form]
        return spaces.Box(np.full(shape, -9.0, np.float32), 9.0, shape, jnp.float32)

    def show(self, position):
        if self.form == "parts":
            return {"sign": (position[1] > 0).astype(jnp.int32), "at": position}
        if self.form == "frame":
            return jnp.stack([position, -position])[..., None]
        if self.form == "bytes":
            return jnp.stack([position, -position])[..., None].astype(jnp.uint8)
        return position

    def reset_env(self, key, params):
        position = jax.random.uniform(key, (3,), jnp.float32, -1, 0)
        return self.show(position), WalkState(time=jnp.int32(0), position=position)

    def step_env(self, key, state, action, params):
        push = jnp.mean(action).astype(jnp.float32) / 5
        position = state.position + push + jax.random.uniform(key, (3,), jnp.float32, -0.5, 0.5)
        state = WalkState(time=state.time + 1, position=position)
        reward = position[1] + 2
        return self.show(position), state, reward, self.is_terminated(state, params), {}

    def is_terminated(self, state, params):
        return state.position[0] > 1


class Record(NamedTuple):
    """A rollout of random actions; arrays are `[env, time, ...]`, `first` is `[env, ...]`."""

    first: Any
    first_state: Any
    action: Any
    observation: Any
    state: Any
    reward: Any
    terminated: Any
    truncated: Any
    info: Any
    inside: Any  # whether the space contains the observation and the final one


def record(env, splits: int = 0) -> Record:
    """Step with keys that have been split `splits` times, as a wrapper that draws splits them."""
    params = env.default_params
    observations = env.observation_space(params)

    def own(key):
        for _ in range(splits):
            key = jax.random.split(key)[0]
        return key

    def contains(observation):
        if isinstance(observations, spaces.Dict):
            return True
        return observations.contains(observation)

    def step(state, key):
        key_action, key_step = jax.random.split(key)
        action = env.action_space(params).sample(key_action)
        out = env.step(own(key_step), state, action, params)
        holds = contains(out[0]), contains(out[5]["final_observation"])
        return out[1], (action, *out, holds)

    def run(key):
        key_reset, key_steps = jax.random.split(key)
        first, state = env.reset(own(key_reset), params)
        return first, state, *jax.lax.scan(step, state, jax.random.split(key_steps, STEPS))[1]

    return Record(*_run(run))


def _run(run):
    return jax.device_get(jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(3), ENVS)))


@functools.cache
def plain(form="vector", discrete=True, splits=0) -> Record:
    """The environment without a wrapper: episodes end in both ways."""
    r = record(Walk(form, discrete), splits)
    assert r.terminated.any()
    assert r.truncated.any()
    return r


def check_rest(r: Record, base: Record):
    """Whatever a wrapper of observations leaves alone is the same."""
    for field in ("action", "reward", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(r, field), getattr(base, field))
    np.testing.assert_array_equal(r.state.time, base.state.time)
    assert np.all(r.inside)


def check(r: Record, first, observation, final, tolerance=0.0):
    """Observations are the expected ones, at a reset, after steps and before resets."""
    same = functools.partial(np.testing.assert_allclose, rtol=tolerance, atol=tolerance)
    same(r.first, first)
    same(r.observation, observation)
    same(r.info["final_observation"], final)
    done = r.terminated | r.truncated
    assert (r.observation != r.info["final_observation"])[done].any()
