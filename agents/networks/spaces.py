"""Observation and action spaces as network inputs, and action distributions as network outputs."""

from typing import Any

import numpy as np
from gymnax.environments import spaces
from jaxtyping import Array, Float

from agents.envs import MultiDiscrete as MultiDiscrete
from agents.envs import encoding
from agents.envs.core.encoding import width

__all__ = ["MultiDiscrete", "encode", "is_discrete", "width"]


def encode(space: Any, element: Any) -> Float[Array, " width"]:
    """Encode an element of a space as one vector: one-hot for discrete parts, flat for boxes.

    **Returns:**

    `width(space)` numbers in JAX's default float.

    **Raises:**

    `TypeError` for another kind of space.
    """
    return encoding.encode(space, element, float)


def is_discrete(action_space: Any) -> bool:
    """Tell whether actions are drawn from categorical distributions; otherwise from a Gaussian.

    **Raises:**

    `TypeError` for a space that is not `Discrete`, `MultiDiscrete` or `Box`.
    """
    if isinstance(action_space, spaces.Discrete | MultiDiscrete):
        return True
    if isinstance(action_space, spaces.Box):
        return False
    raise TypeError(f"`action_space` (={action_space!r}) must be Discrete, MultiDiscrete or Box.")


def is_bounded(space: Any) -> bool:
    """Tell whether a space is a `Box` with finite sides."""
    if not isinstance(space, spaces.Box):
        return False
    return bool(np.isfinite([np.max(np.abs(space.low)), np.max(np.abs(space.high))]).all())
