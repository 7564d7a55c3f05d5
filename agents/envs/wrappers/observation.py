"""Wrappers that change the form of an observation: mask, hide, one-hot, flatten."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces
from gymnax.environments.environment import Environment

from ..core.arrays import as_array, as_whole
from ..core.encoding import bounds, box_bounds, encode, width
from ..core.spaces import MultiDiscrete
from .base import MemorylessWrapper, require


class Mask(MemorylessWrapper):
    """Keep some components of an observation and drop the others."""

    def __init__(self, env: Environment, keep: Sequence[int]):
        """**Arguments:**

        - `env`: an environment whose observations are vectors: a `Box` of one axis, or a
            `MultiDiscrete`.
        - `keep`: the components to keep, counted from 0, in the order in which they are shown.

        **Raises:**

        `TypeError` for other observations; `ValueError` or `TypeError` if `keep` is no list of
        whole numbers, such as a mask, is empty, has a component twice or one that does not exist.
        """
        space = require(env, "Mask", spaces.Box, MultiDiscrete)
        super().__init__(env)
        self.keep = as_whole("keep", keep)
        if len(space.shape) != 1:
            raise TypeError(
                f"`env` (={env.name}) must have observations of one axis for Mask, not of shape "
                f"{tuple(space.shape)}; Flatten makes a vector of them."
            )
        right = set(self.keep) <= set(range(space.shape[0]))
        if not (right and self.keep and len(set(self.keep)) == len(self.keep)):
            raise ValueError(
                f"`keep` (={keep!r}) must hold different components, at least one, from 0 to "
                f"{space.shape[0] - 1}."
            )

    def observation_space(self, params: Any = None) -> Any:
        space = self.env.observation_space(self.default_params if params is None else params)
        if isinstance(space, MultiDiscrete):
            return MultiDiscrete([space.nvec[i] for i in self.keep])
        keep = np.asarray(self.keep)
        low, high = (bound[keep] for bound in box_bounds(space))
        return spaces.Box(low, high, (len(self.keep),), space.dtype)

    def _observe(self, key: Any, observation: Any, params: Any) -> Any:
        return observation[np.asarray(self.keep)]


class Hide(MemorylessWrapper):
    """Show zeros in some places of an observation, which keeps its shape."""

    def __init__(self, env: Environment, hidden: Any):
        """**Arguments:**

        - `env`: an environment with observations in a `Box`.
        - `hidden`: Boolean array of an observation's shape, true where zeros are shown.

        **Raises:**

        `TypeError` for other observations or an array that is not Boolean, `ValueError` for
        another shape.
        """
        space = require(env, "Hide", spaces.Box)
        super().__init__(env)
        self.hidden = as_array("hidden", hidden, "b", "an array of booleans")
        if self.hidden.shape != tuple(space.shape):
            raise ValueError(
                f"`hidden` (of shape {self.hidden.shape}) must have the shape of an observation "
                f"(={tuple(space.shape)})."
            )

    def observation_space(self, params: Any = None) -> spaces.Box:
        space = self.env.observation_space(self.default_params if params is None else params)
        low, high = (jnp.where(self.hidden, 0, bound) for bound in box_bounds(space))
        return spaces.Box(low, high, space.shape, space.dtype)

    def _observe(self, key: Any, observation: Any, params: Any) -> Any:
        return jnp.where(self.hidden, jnp.zeros_like(observation), observation)


class OneHot(MemorylessWrapper):
    """Show a discrete observation as a vector with a one at its value.

    Of several discrete numbers, the vectors stand end to end.
    """

    def __init__(self, env: Environment):
        """**Arguments:**

        - `env`: an environment with observations in a `Discrete` or a `MultiDiscrete`.

        **Raises:**

        `TypeError` for other observations.
        """
        require(env, "OneHot", spaces.Discrete, MultiDiscrete)
        super().__init__(env)

    def observation_space(self, params: Any = None) -> spaces.Box:
        return _vectors(self.env, self.default_params if params is None else params)

    def _observe(self, key: Any, observation: Any, params: Any) -> Any:
        return encode(self.env.observation_space(params), observation)


class Flatten(MemorylessWrapper):
    """Show an observation as one vector: boxes flat, discrete parts one-hot, parts end to end."""

    def __init__(self, env: Environment):
        """**Arguments:**

        - `env`: an environment with observations in a `Box`, or in a `Tuple` or a `Dict` of any
            spaces.

        **Raises:**

        `TypeError` for other observations.
        """
        require(env, "Flatten", spaces.Box, spaces.Tuple, spaces.Dict)
        super().__init__(env)

    def observation_space(self, params: Any = None) -> spaces.Box:
        return _vectors(self.env, self.default_params if params is None else params)

    def _observe(self, key: Any, observation: Any, params: Any) -> Any:
        return encode(self.env.observation_space(params), observation)


def _vectors(env: Environment, params: Any) -> spaces.Box:
    """The box in which encoded observations are."""
    space = env.observation_space(params)
    return spaces.Box(*bounds(space), (width(space),), jnp.float32)
