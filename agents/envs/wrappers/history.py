"""Wrappers that show the past: earlier observations, the previous action and reward."""

from typing import Any

import jax.numpy as jnp
from gymnax.environments import spaces
from gymnax.environments.environment import Environment

from zoo.annotations import Count, fitted

from ..core.encoding import bounds, box_bounds, clipped, encode, width, with_zeros
from .base import ObservationWrapper, require


class FrameStack(ObservationWrapper):
    """Show the last observations of the episode along a new first axis, the newest one last.

    Places before the episode's first observation hold zeros.
    """

    def __init__(self, env: Environment, count: int = 4):
        """**Arguments:**

        - `env`: an environment with observations in a `Box`.
        - `count`: how many observations are shown, the present one among them; at least 1.

        **Raises:**

        `TypeError` for other observations or a count that is no whole number; `ValueError` for one
        less than 1.
        """
        require(env, "FrameStack", spaces.Box)
        super().__init__(env)
        self.count = fitted("count", count, Count)

    def observation_space(self, params: Any = None) -> spaces.Box:
        space = self.env.observation_space(self.default_params if params is None else params)
        shape = (self.count, *space.shape)
        low, high = (jnp.stack([b] * self.count) for b in box_bounds(with_zeros(space)))
        return spaces.Box(low, high, shape, space.dtype)

    def _first(self, key: Any, own: Any, observation: Any, params: Any) -> tuple[Any, Any]:
        empty = jnp.zeros((self.count - 1, *observation.shape), observation.dtype)
        stack = jnp.concatenate([empty, observation[None]])
        return stack, stack[1:]

    def _next(
        self, key: Any, own: Any, observation: Any, action: Any, reward: Any, params: Any
    ) -> tuple[Any, Any]:
        stack = jnp.concatenate([own, observation[None]])
        return stack, stack[1:]


class PreviousActionReward(ObservationWrapper):
    """Append the previous action and the previous reward to an observation.

    A discrete action is one-hot, and one beyond a `Box` the nearest of it. At an episode's first
    observation all appended numbers are 0, so that "no action" differs from action 0.
    """

    def __init__(self, env: Environment, action: bool = True, reward: bool = True):
        """**Arguments:**

        - `env`: an environment whose observations are vectors: a `Box` of one axis.
        - `action`, `reward`: which of the two to append; at least one.

        **Raises:**

        `TypeError` for other observations, actions of an unknown kind, or what is not True or
        False; `ValueError` if nothing is to be appended.
        """
        space = require(env, "PreviousActionReward", spaces.Box)
        if len(space.shape) != 1:
            raise TypeError(
                f"`env` (={env.name}) must have observations of one axis for "
                f"PreviousActionReward, not of shape {tuple(space.shape)}; Flatten makes a vector "
                "of them."
            )
        super().__init__(env)
        self.action, self.reward = fitted("action", action, bool), fitted("reward", reward, bool)
        if not (self.action or self.reward):
            raise ValueError("`action` or `reward` (both False) must be True.")
        width(env.action_space(env.default_params))

    def observation_space(self, params: Any = None) -> spaces.Box:
        params = self.default_params if params is None else params
        parts = [bounds(self.env.observation_space(params))]
        if self.action:
            low, high = bounds(self.env.action_space(params))
            parts.append((jnp.minimum(low, 0), jnp.maximum(high, 0)))
        if self.reward:
            limit = jnp.full(1, jnp.finfo(jnp.float32).max)
            parts.append((-limit, limit))
        low, high = (jnp.concatenate(bound) for bound in zip(*parts, strict=True))
        return spaces.Box(low, high, low.shape, jnp.float32)

    def _first(self, key: Any, own: Any, observation: Any, params: Any) -> tuple[Any, Any]:
        appended = width(self.env.action_space(params)) * self.action + self.reward
        return jnp.concatenate([observation, jnp.zeros(appended, jnp.float32)]), own

    def _next(
        self, key: Any, own: Any, observation: Any, action: Any, reward: Any, params: Any
    ) -> tuple[Any, Any]:
        parts = [observation]
        if self.action:
            space = self.env.action_space(params)
            parts.append(encode(space, clipped(space, action)))
        if self.reward:
            parts.append(reward[None])
        return jnp.concatenate(parts), own
