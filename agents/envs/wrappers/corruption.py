"""Wrappers that spoil observations at random: noise and flicker."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces
from gymnax.environments.environment import Environment

from zoo.annotations import Share, fitted

from ..core.arrays import as_array
from ..core.encoding import with_zeros
from .base import MemorylessWrapper, require


class Noise(MemorylessWrapper):
    """Add Gaussian noise to every component of an observation, anew at every step."""

    random = True

    def __init__(self, env: Environment, scale: Any):
        """**Arguments:**

        - `env`: an environment with observations in a `Box`.
        - `scale`: standard deviation of the noise, in the observation's units; one number, or an
            array of an observation's shape.

        **Raises:**

        `TypeError` for other observations or what is no number; `ValueError` if a standard
        deviation is negative or not finite, or the shape is another one.
        """
        space = require(env, "Noise", spaces.Box)
        super().__init__(env)
        scales = as_array("scale", scale, "iuf", "a number or an array of numbers")
        self.scale = scales.astype(np.float32)
        if self.scale.shape not in ((), tuple(space.shape)):
            raise ValueError(
                f"`scale` (of shape {self.scale.shape}) must be a number or have the shape of an "
                f"observation (={tuple(space.shape)})."
            )
        if not (np.isfinite(self.scale) & (self.scale >= 0)).all():
            raise ValueError(f"`scale` (={scale!r}) must be finite and at least 0.")

    def observation_space(self, params: Any = None) -> spaces.Box:
        space = self.env.observation_space(self.default_params if params is None else params)
        limit = jnp.full(space.shape, jnp.finfo(jnp.float32).max)
        return spaces.Box(-limit, limit, space.shape, jnp.float32)

    def _observe(self, key: Any, observation: Any, params: Any) -> Any:
        return observation + self.scale * jax.random.normal(key, observation.shape, jnp.float32)


class Flicker(MemorylessWrapper):
    """Show zeros instead of the whole observation, at random steps.

    Every observation, an episode's first one included, is lost with the same probability and
    independently of all others.

    Source: Hausknecht and Stone, "Deep Recurrent Q-Learning for Partially Observable MDPs", 2015.
    """

    random = True

    def __init__(self, env: Environment, probability: float = 0.5):
        """**Arguments:**

        - `env`: an environment with observations in a `Box`.
        - `probability`: that an observation is lost, from 0 to 1.

        **Raises:**

        `TypeError` for other observations or what is no number; `ValueError` for another
        probability.
        """
        require(env, "Flicker", spaces.Box)
        super().__init__(env)
        self.probability = fitted("probability", probability, Share)

    def observation_space(self, params: Any = None) -> spaces.Box:
        space = self.env.observation_space(self.default_params if params is None else params)
        return with_zeros(space)

    def _observe(self, key: Any, observation: Any, params: Any) -> Any:
        lost = jax.random.uniform(key, dtype=jnp.float32) < self.probability
        return jax.lax.select(lost, jnp.zeros_like(observation), observation)
