"""Environments in which everything is known beforehand."""

import contextlib
import dataclasses
import os
import shlex
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import Environment, EnvParams, EnvState

from agents.envs import registry
from agents.envs.diagnostics.t_maze import EnvState as MazeState
from agents.envs.diagnostics.t_maze import TMaze


class Tape(Environment):
    """The same episode again and again, whatever is done: what PPO makes of it can be computed.

    `reward` and `observation` say what there is after so many steps; `length` steps terminate the
    episode, the time limit truncates it. There is only one action.
    """

    def __init__(self, length: int = 5, limit: int = 100):
        super().__init__()
        self.length, self.limit = length, limit

    @property
    def default_params(self):
        return EnvParams(max_steps_in_episode=self.limit)

    def observation_space(self, params):
        return spaces.Box(-10.0, 10.0, (2,))

    def action_space(self, params):
        return spaces.Discrete(1)

    @staticmethod
    def observation(time):
        return jnp.stack([jnp.cos(2.0 * time), 3.0 + time]).astype(jnp.float32)

    @staticmethod
    def reward(time):
        return (jnp.sin(3.0 * time) + 2.0).astype(jnp.float32)

    def reset_env(self, key, params):
        return self.observation(jnp.int32(0)), EnvState(jnp.int32(0))

    def step_env(self, key, state, action, params):
        time = state.time + 1
        ended = time >= self.length
        return self.observation(time), EnvState(time), self.reward(time), ended, {}


class Square(Tape):
    """The tape, with actions of two axes."""

    def action_space(self, params):
        return spaces.Box(-1, 1, (2, 2))


@struct.dataclass
class SpanState:
    time: Any
    length: Any


class Spans(Environment):
    """Episodes of 1 to 9 steps, drawn at random; the last step gives a reward of the length.

    The observation is the length. The time limit truncates.
    """

    @property
    def default_params(self):
        return EnvParams(max_steps_in_episode=100)

    def observation_space(self, params):
        return spaces.Discrete(10)

    def action_space(self, params):
        return spaces.Discrete(2)

    def reset_env(self, key, params):
        length = jax.random.randint(key, (), 1, 10, jnp.int32)
        return length, SpanState(jnp.int32(0), length)

    def step_env(self, key, state, action, params):
        state = SpanState(state.time + 1, state.length)
        ended = state.time == state.length
        return state.length, state, jnp.where(ended, state.length, 0.0), ended, {}


class Chain(Environment):
    """Cells 0 to 4 from left to right with one action; leaving the last one gives 1."""

    @property
    def default_params(self):
        return EnvParams(max_steps_in_episode=100)

    def observation_space(self, params):
        return spaces.Discrete(6)

    def action_space(self, params):
        return spaces.Discrete(1)

    def reset_env(self, key, params):
        return jnp.int32(0), EnvState(jnp.int32(0))

    def step_env(self, key, state, action, params):
        time = state.time + 1
        ended = time >= 5
        return time, EnvState(time), ended.astype(jnp.float32), ended, {}


class SteeredTMaze(TMaze):
    """A T-maze whose actions are vectors: the greatest number says where to go."""

    def action_space(self, params=None):
        return spaces.Box(-1.0, 1.0, (4,))

    def step_env(self, key, state, action, params):
        return super().step_env(key, state, jnp.argmax(action), params)


@struct.dataclass
class PoisonableState(MazeState):
    poisoned: Any


def poisonable(agent):
    """The agent in its T-maze, with a state in which rewards are not a number: see `poisoned`."""
    env, params = agent.environment

    class Poisonable(type(env)):
        def reset_env(self, key, params):
            seen, state = super().reset_env(key, params)
            return seen, PoisonableState(**vars(state), poisoned=jnp.bool_(False))

        def step_env(self, key, state, action, params):
            poisoned = state.poisoned
            seen, state, reward, ended, info = super().step_env(key, state, action, params)
            state = PoisonableState(**vars(state), poisoned=poisoned)
            return seen, state, jnp.where(poisoned, jnp.nan, reward), ended, info

    env = Poisonable(length=env.length), params
    return dataclasses.replace(agent, env=env, env_options={})


def poisoned(state):
    """An agent's state, with the rewards of the present episodes poisoned."""

    def switch(path, leaf):
        if "poisoned" not in jax.tree_util.keystr(path):
            return leaf
        return jax.device_put(np.ones(leaf.shape, bool), leaf.sharding)

    return jax.tree_util.tree_map_with_path(switch, state)


STEERED = "steered_t_maze"


@contextlib.contextmanager
def steered_t_maze_has_a_name():
    """As long as it lasts: tables of other tests list all environments that have one."""
    registry.register(STEERED, SteeredTMaze)
    try:
        yield
    finally:
        del registry._REGISTERED[STEERED]


SMALL_TRAINING = shlex.split(
    "train --env RepeatFirstEasy --hidden 4 --encoder-size 4 --head-size 4 --num-envs 2 "
    "--rollout-length 8 --epochs 1 --minibatches 2 --steps 64 --seeds 2 --evaluate-every 2 "
    "--evaluation-episodes 2 --out"
)
"""Words of the command line, without the folder."""


def closed_pipe():
    """A stream that nobody reads, as what writes to `tee` has where Ctrl-C has ended that."""
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w")
