"""Observation and action spaces as network inputs, and action distributions as network outputs."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces
from jaxtyping import Array, Float

from agents.envs import MultiDiscrete as MultiDiscrete
from agents.envs import encoding
from agents.envs.core.encoding import is_bounded, width
from agents.envs.core.spaces import by_content
from agents.envs.core.statistics import NORMALIZED_LIMIT

__all__ = ["MultiDiscrete", "by_content", "encode", "is_bounded", "is_discrete", "width"]


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


def check_vectors(action_space: Any, env_name: str) -> None:
    """Raise `TypeError` for an environment whose actions are of another kind, and `ValueError`
    where continuous actions are not vectors."""
    is_discrete(action_space)
    if isinstance(action_space, spaces.Box) and len(action_space.shape) != 1:
        raise ValueError(
            f"`env` (={env_name}) must have actions of one axis, not {action_space!r} of shape "
            f"{action_space.shape}."
        )


def check_room(action_space: Any, env_name: str) -> None:
    """Raise `ValueError` for an environment with a bounded number that has no room to vary."""
    low, high = (np.asarray(side) for side in (action_space.low, action_space.high))
    if not (low < high).all():
        raise ValueError(
            f"`env` (={env_name}) must have room in every number of an action, which its "
            f"{action_space!r}, from {low} to {high}, has not."
        )


def clipped(action_space: Any, action: Array) -> Array:
    """Return what an environment is given for actions, with any leading axes: in a `Box` the
    nearest inside of it."""
    if not isinstance(action_space, spaces.Box):
        return action
    bounds = (jnp.broadcast_to(x, action.shape) for x in (action_space.low, action_space.high))
    return jnp.clip(action, *bounds)


def normalized_space(space: Any) -> Any:
    """Return the space of normalized observations, which have both signs; of a `Box` only."""
    if not isinstance(space, spaces.Box):
        return space
    return spaces.Box(-NORMALIZED_LIMIT, NORMALIZED_LIMIT, space.shape, jnp.float32)
