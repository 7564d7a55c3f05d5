"""Wrappers around whole episodes: a time limit, and a log of return and length."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments.environment import Environment
from jaxtyping import Array, Bool, PRNGKeyArray

from zoo.annotations import Count, fitted

from .base import Step, Wrapper, WrapperState, restart, runs_on_the_host, where


class TimeLimit(Wrapper):
    """Truncate an episode after so many steps, whatever limit the environment itself has.

    An episode that terminates with its last step is not truncated by this limit. The steps are
    counted in the state. The environment inside knows nothing of the limit, so a
    reset of it is computed at every step, besides the one that its own step computes; where the
    environment's `max_steps_in_episode` does what is wanted, that is cheaper. One that runs on the
    host cannot be reset by itself, and takes `max_steps_in_episode` only.
    """

    def __init__(self, env: Environment, limit: int):
        """**Arguments:**

        - `env`: the environment to wrap.
        - `limit`: steps after which an episode is truncated; at least 1.

        **Raises:**

        `TypeError` for a limit that is no whole number; `ValueError` for one less than 1 or beyond
        32 bits, or an environment that runs on the host.
        """
        super().__init__(env)
        if runs_on_the_host(env):
            raise ValueError(
                f"`env` (={env.name}) cannot be reset by itself, because it runs on the host: give "
                "it `max_steps_in_episode` in place of a TimeLimit."
            )
        self.limit = fitted("limit", limit, Count)

    def is_truncated(self, state: WrapperState, params: Any) -> Bool[Array, ""]:
        """Tell whether this limit or that of the environment inside is reached."""
        return self.env.is_truncated(state.env_state, params) | (state.own >= self.limit)

    def _begin(
        self, key: Any, observation: Any, env_state: Any, last: Any, params: Any
    ) -> tuple[Any, WrapperState]:
        return observation, WrapperState(env_state=env_state, own=jnp.int32(0))

    def step(self, key: PRNGKeyArray, state: WrapperState, action: Any, params: Any = None) -> Step:
        params = self.default_params if params is None else params
        observation, env_state, reward, terminated, truncated, info = self._inside(
            key, state.env_state, action, params
        )
        # Of the same key, which is handed on whole: no `split` of it goes so far.
        restart_key = jax.random.fold_in(key, 2**32 - 1)
        time = state.own + 1
        cut = (time >= self.limit) & ~(terminated | truncated)
        again = restart(self.env, restart_key, env_state, params)
        observation, env_state = where(cut, again, (observation, env_state))
        truncated |= cut
        time = jax.lax.select(terminated | truncated, jnp.int32(0), time)
        state = WrapperState(env_state=env_state, own=time)
        return observation, state, reward, terminated, truncated, info | {"truncated": truncated}


@struct.dataclass
class EpisodeLog:
    """Return and length of the present episode so far."""

    episode_return: Any
    episode_length: Any


class Log(Wrapper):
    """Report the episode's return and length in `info`.

    `info["episode_return"]` and `info["episode_length"]` are those of the episode so far, this step
    included; where `terminated | truncated` they are those of the whole episode. Rewards are
    counted as they come from inside: a wrapper that changes them belongs outside of this one.
    """

    def _begin(
        self, key: Any, observation: Any, env_state: Any, last: Any, params: Any
    ) -> tuple[Any, WrapperState]:
        return observation, WrapperState(env_state=env_state, own=_nothing_yet())

    def step(self, key: PRNGKeyArray, state: WrapperState, action: Any, params: Any = None) -> Step:
        params = self.default_params if params is None else params
        observation, env_state, reward, terminated, truncated, info = self._inside(
            key, state.env_state, action, params
        )
        log = EpisodeLog(
            episode_return=state.own.episode_return + reward,
            episode_length=state.own.episode_length + 1,
        )
        info = info | {
            "episode_return": log.episode_return,
            "episode_length": log.episode_length,
        }
        own = where(terminated | truncated, _nothing_yet(), log)
        state = WrapperState(env_state=env_state, own=own)
        return observation, state, reward, terminated, truncated, info


def _nothing_yet() -> EpisodeLog:
    return EpisodeLog(episode_return=jnp.float32(0), episode_length=jnp.int32(0))
