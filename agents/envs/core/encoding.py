"""Elements of spaces as vectors: one-hot for discrete parts, flat for boxes."""

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces
from jaxtyping import Array, Float

from .spaces import LARGEST, MultiDiscrete


def width(space: Any) -> int:
    """Count the numbers that `encode` makes of an element of `space`."""
    if isinstance(space, spaces.Discrete):
        return space.n
    if isinstance(space, MultiDiscrete):
        return sum(space.nvec)
    if isinstance(space, spaces.Box):
        return math.prod(space.shape)
    return sum(width(part) for part in _parts(space))


def places(space: Any, start: int = 0) -> Iterator[tuple[int, Any]]:
    """List the parts of a space that have none, each after where its numbers begin in `encode`'s.

    **Arguments:**

    - `start`: where those of the space begin.
    """
    if isinstance(space, spaces.Discrete | MultiDiscrete | spaces.Box):
        yield start, space
        return
    for part in _parts(space):
        yield from places(part, start)
        start += width(part)


def encode(space: Any, element: Any, dtype: Any = jnp.float32) -> Float[Array, " width"]:
    """Write an element of a space as one vector: one-hot for discrete parts, flat for boxes.

    **Arguments:**

    - `space`: a `Discrete`, `MultiDiscrete`, `Box`, `Tuple` or `Dict` space.
    - `element`: one element of it, unbatched.
    - `dtype`: of the result.

    **Returns:**

    A vector of `width(space)` numbers.

    **Raises:**

    `TypeError` for another kind of space; `ValueError` for an element of other parts.
    """
    if isinstance(space, spaces.Discrete):
        element = jnp.asarray(element)
        whole = element.astype(jnp.int32) if element.dtype == bool else element
        return jax.nn.one_hot(whole, space.n, dtype=dtype)
    if isinstance(space, MultiDiscrete):
        number = np.repeat(np.arange(len(space.nvec)), space.nvec)
        value = np.concatenate([np.arange(n) for n in space.nvec])
        return (jnp.asarray(element)[number] == value).astype(dtype)
    if isinstance(space, spaces.Box):
        return jnp.ravel(element).astype(dtype)
    parts, is_named = _parts(space), isinstance(element, dict)
    by_name = is_named and isinstance(space.spaces, dict)
    wanted = list(space.spaces if by_name else range(len(parts)))
    given = element if is_named else dict(enumerate(element))
    if given.keys() != set(wanted):
        raise ValueError(f"`element` (of parts {list(given)}) must be of parts {wanted}.")
    encoded = [encode(part, given[at], dtype) for at, part in zip(wanted, parts, strict=True)]
    return jnp.concatenate(encoded)


def bounds(space: Any) -> tuple[Float[Array, " width"], Float[Array, " width"]]:
    """Give the least and the greatest value of each number that `encode` makes, two vectors."""
    if isinstance(space, spaces.Discrete | MultiDiscrete):
        return jnp.zeros(width(space), jnp.float32), jnp.ones(width(space), jnp.float32)
    if isinstance(space, spaces.Box):
        low, high = box_bounds(space)
        return jnp.ravel(low), jnp.ravel(high)
    low, high = zip(*(bounds(part) for part in _parts(space)), strict=True)
    return jnp.concatenate(low), jnp.concatenate(high)


def box_bounds(space: spaces.Box) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Give a box's bounds as float32 arrays of its shape; gymnax declares numbers in places."""
    low = jnp.broadcast_to(jnp.asarray(space.low, jnp.float32), space.shape)
    high = jnp.broadcast_to(jnp.asarray(space.high, jnp.float32), space.shape)
    return low, high


def clipped(action_space: Any, action: Array) -> Array:
    """Return what an environment is given for actions, with any leading axes: in a `Box` the
    nearest inside of it."""
    if not isinstance(action_space, spaces.Box):
        return action
    bounds = (jnp.broadcast_to(x, jnp.shape(action)) for x in (action_space.low, action_space.high))
    return jnp.clip(action, *bounds)


def is_bounded(space: Any) -> bool:
    """Tell whether a space is a `Box` with bounds on all sides.

    The largest float32 is none: gymnax and others write it where there is no bound.
    """
    if not isinstance(space, spaces.Box):
        return False
    # As arrays of NumPy first: what NumPy asks of JAX's own is traced where a program is.
    sides = (np.asarray(side).astype(np.float64) for side in (space.low, space.high))
    return all((np.abs(side) < LARGEST).all() for side in sides)


def with_zeros(space: spaces.Box) -> spaces.Box:
    """Make the smallest box that holds another one and zeros, of the same type."""
    low, high = box_bounds(space)
    return spaces.Box(jnp.minimum(low, 0), jnp.maximum(high, 0), space.shape, space.dtype)


def _parts(space: Any) -> list[Any]:
    parts = getattr(space, "spaces", None)
    if parts is None:
        raise TypeError(
            f"`space` (={space!r}) must be Discrete, MultiDiscrete, Box, Tuple or Dict."
        )
    return list(parts.values()) if isinstance(parts, dict) else list(parts)
