"""Wrappers that normalize observations and rewards by running statistics in the state."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import Environment
from jaxtyping import PRNGKeyArray

from zoo.annotations import Positive, Share, fitted

from ..core.statistics import RunningStatistics
from .base import ObservationWrapper, Step, Wrapper, WrapperState, require


class NormalizeObservation(ObservationWrapper):
    """Shift and scale every component of an observation to mean 0 and variance 1.

    Mean and variance are those of everything seen since `reset`, the present observation included,
    each component by itself; auto-resets keep them. They are part of the state, so environments
    under `vmap` have statistics of their own, which differ until they have seen enough;
    `agents.PPO(normalize_observation=True)` has one set for all environments instead. A constant
    component becomes 0.
    """

    def __init__(self, env: Environment, limit: float = 10.0):
        """**Arguments:**

        - `env`: an environment with observations in a `Box`.
        - `limit`: largest magnitude of a result, in standard deviations; above 0.

        **Raises:**

        `TypeError` for other observations or what is no number; `ValueError` for another limit.
        """
        require(env, "NormalizeObservation", spaces.Box)
        super().__init__(env)
        self.limit = fitted("limit", limit, Positive)

    def observation_space(self, params: Any = None) -> spaces.Box:
        shape = self.env.observation_space(self.default_params if params is None else params).shape
        limit = jnp.full(shape, self.limit, jnp.float32)
        return spaces.Box(-limit, limit, shape, jnp.float32)

    def _start(self, params: Any) -> RunningStatistics:
        return RunningStatistics.init(self.env.observation_space(params).shape, jnp.float32)

    def _first(self, key: Any, own: Any, observation: Any, params: Any) -> tuple[Any, Any]:
        observation = observation.astype(jnp.float32)
        own = own.update(observation)
        return own.normalize(observation, self.limit), own

    def _next(
        self, key: Any, own: Any, observation: Any, action: Any, reward: Any, params: Any
    ) -> tuple[Any, Any]:
        return self._first(key, own, observation, params)


@struct.dataclass
class RewardScale:
    """The discounted return of the present episode so far, and statistics of all such returns."""

    discounted: Any
    statistics: RunningStatistics


class NormalizeReward(Wrapper):
    r"""Divide a reward by the standard deviation of the discounted sum of past rewards.

    The sum is \( G_t = \gamma G_{t-1} + r_t \), zero before an episode's first reward. Its variance
    is that of every step since `reset`, the present one included; auto-resets keep it. A deviation
    far below 1e-4 counts as 1e-4: rewards that small stay small. The statistics are part of the
    state, so environments under `vmap` have their own; `agents.PPO(normalize_reward=True)` has one
    set for all environments instead.

    Source: Engstrom et al., "Implementation Matters in Deep RL", ICLR 2020 (reward scaling).
    """

    def __init__(self, env: Environment, discount: float = 0.99, limit: float = 10.0):
        """**Arguments:**

        - `env`: the environment to wrap.
        - `discount`: γ, from 0 to 1.
        - `limit`: largest magnitude of a scaled reward; above 0.

        **Raises:**

        `TypeError` for what is no number; `ValueError` for one that breaks its rule.
        """
        super().__init__(env)
        self.reward_discount = fitted("discount", discount, Share)
        self.limit = fitted("limit", limit, Positive)

    def _begin(
        self, key: Any, observation: Any, env_state: Any, last: Any, params: Any
    ) -> tuple[Any, WrapperState]:
        statistics = (
            RunningStatistics.init((), jnp.float32) if last is None else last.own.statistics
        )
        own = RewardScale(discounted=jnp.float32(0), statistics=statistics)
        return observation, WrapperState(env_state=env_state, own=own)

    def step(self, key: PRNGKeyArray, state: WrapperState, action: Any, params: Any = None) -> Step:
        params = self.default_params if params is None else params
        observation, env_state, reward, terminated, truncated, info = self._inside(
            key, state.env_state, action, params
        )
        discounted = self.reward_discount * state.own.discounted + reward
        statistics = state.own.statistics.update(discounted)
        scaled = statistics.scale(reward, self.limit)
        discounted = jax.lax.select(terminated | truncated, jnp.float32(0), discounted)
        own = RewardScale(discounted=discounted, statistics=statistics)
        state = WrapperState(env_state=env_state, own=own)
        return observation, state, scaled, terminated, truncated, info | {"reward": reward}
