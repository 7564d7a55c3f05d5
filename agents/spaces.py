"""Observation and action spaces as network inputs, and action distributions as network outputs."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces
from jaxtyping import Array, Float

from agents.envs import MultiDiscrete


def width(space: Any) -> int:
    """How many numbers `encode` makes of an element of `space`.

    **Arguments:**

    - `space`: a `Discrete`, `MultiDiscrete`, `Box`, `Tuple` or `Dict` space.

    **Returns:**

    The width.

    **Raises:**

    `TypeError` for another kind of space.
    """
    if isinstance(space, spaces.Discrete):
        return space.n
    if isinstance(space, MultiDiscrete):
        return sum(space.nvec)
    if isinstance(space, spaces.Box):
        return math.prod(space.shape)
    return sum(width(part) for part in _parts(space))


def _parts(space: Any) -> list[Any]:
    parts = getattr(space, "spaces", None)
    if parts is None:
        raise TypeError(
            f"`space` (={space!r}) must be Discrete, MultiDiscrete, Box, Tuple or Dict."
        )
    return list(parts.values()) if isinstance(parts, dict) else list(parts)


def encode(space: Any, element: Any) -> Float[Array, " width"]:
    """An element of a space as one vector: one-hot for discrete parts, flat for boxes.

    **Arguments:**

    - `space`: a gymnax space.
    - `element`: one element of it, unbatched.

    **Returns:**

    A vector of `width(space)` numbers.

    **Raises:**

    `TypeError` for another kind of space.
    """
    if isinstance(space, spaces.Discrete):
        return jax.nn.one_hot(element, space.n)
    if isinstance(space, MultiDiscrete):
        number = np.repeat(np.arange(len(space.nvec)), space.nvec)
        value = np.concatenate([np.arange(n) for n in space.nvec])
        return (jnp.asarray(element)[number] == value).astype(float)
    if isinstance(space, spaces.Box):
        return jnp.ravel(element).astype(float)
    elements = [element[key] for key in space.spaces] if isinstance(element, dict) else element
    return jnp.concatenate([encode(s, e) for s, e in zip(_parts(space), elements, strict=True)])


def is_discrete(action_space: Any) -> bool:
    """Whether actions are drawn from categorical distributions; otherwise from a Gaussian.

    **Arguments:**

    - `action_space`: a `Discrete`, `MultiDiscrete` or `Box` space.

    **Returns:**

    A bool.

    **Raises:**

    `TypeError` for another kind of space.
    """
    if isinstance(action_space, spaces.Discrete | MultiDiscrete):
        return True
    if isinstance(action_space, spaces.Box):
        return False
    raise TypeError(f"`action_space` (={action_space!r}) must be Discrete, MultiDiscrete or Box.")
