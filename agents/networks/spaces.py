"""Observation and action spaces as network inputs, and action distributions as network outputs."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces
from jaxtyping import Array, Float

from agents.envs import MultiDiscrete as MultiDiscrete
from agents.envs import encoding
from agents.envs.core.encoding import clipped, is_bounded, places, width
from agents.envs.core.spaces import by_content
from agents.envs.core.statistics import NORMALIZED_LIMIT
from zoo.parts.checks import shown

__all__ = [
    "MultiDiscrete",
    "by_content",
    "clipped",
    "encode",
    "is_alike",
    "is_bounded",
    "is_discrete",
    "places",
    "width",
]


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


def parts_of(tree: Any) -> dict[Any, Any]:
    """The parts of a tuple, list or dictionary by index or key; an array has none."""
    if isinstance(tree, dict):
        return dict(tree)
    return dict(enumerate(tree)) if isinstance(tree, tuple | list) else {}


def is_alike(space: Any, other: Any) -> bool:
    """Tell whether a network for the one space is one for the other.

    Parts, shapes and counts have to be equal; the bounds of a box need not.
    """
    return _form(space) == _form(other)


def _form(space: Any) -> tuple[Any, ...]:
    """Kind, shape and counts of a space, by parts where it has some."""
    known = spaces.Discrete, spaces.Box, MultiDiscrete, spaces.Tuple, spaces.Dict
    kind = next((kind for kind in known if isinstance(space, kind)), type(space))
    if (parts := getattr(space, "spaces", None)) is not None:
        return kind, *((name, _form(part)) for name, part in parts_of(parts).items())
    shape, n = getattr(space, "shape", None), getattr(space, "n", None)
    return kind, shape, n, tuple(getattr(space, "nvec", ()))


def check_space(space: Any, name: str) -> None:
    """Raise `TypeError` or `ValueError` for a space that says nothing definite.

    **Arguments:**

    - `space`: what an environment gives as a space; of another kind than gymnax's and
      `MultiDiscrete` it is refused where it is used, but gymnasium's here, whose names are alike.
    - `name`: what to call it.
    """
    if type(space).__module__.partition(".")[0] in ("gym", "gymnasium"):
        raise TypeError(
            f"{name} (={space!r}) is one of {type(space).__module__}; gymnax's are wanted, "
            "`gymnax.environments.spaces`, or `agents.envs.MultiDiscrete`."
        )
    if isinstance(space, spaces.Discrete):
        if not isinstance(space.n, int | np.integer) or space.n < 1:
            raise ValueError(f"{name}.n (={shown(space.n)}) must be a whole number of at least 1.")
    elif isinstance(space, spaces.Box):
        _check_box(space, name)
    elif space is None:  # as of a function that forgets its `return`
        raise TypeError(f"{name} (=None) must be Discrete, MultiDiscrete, Box, Tuple or Dict.")
    elif isinstance(parts := getattr(space, "spaces", None), dict | tuple | list):
        if not parts:
            raise ValueError(f"{name} (={type(space).__name__}) must have a part, and has none.")
        for key, part in parts_of(parts).items():
            check_space(part, f"{name}[{key!r}]")


def _check_box(space: spaces.Box, name: str) -> None:
    if not isinstance(space.shape, tuple):
        raise TypeError(f"{name} (a Box of shape {space.shape!r}) must have a tuple as its shape.")
    if 0 in space.shape:
        raise ValueError(f"{name} (a Box of shape {space.shape!r}) must have at least one number.")
    for side in ("low", "high"):
        given = getattr(space, side)
        bound = np.asarray(given)
        if bound.dtype.kind not in "biuf":
            raise TypeError(f"{name}.{side} (={shown(given)}) must be numbers.")
        if isinstance(given, list | tuple):  # gymnax's own functions do not take them
            raise TypeError(f"{name}.{side} (={shown(given)}) must be a number or an array.")
        try:
            np.broadcast_to(bound, space.shape)
        except ValueError:
            raise ValueError(
                f"{name}.{side} (of shape {bound.shape}) must be one number, or of the Box's shape "
                f"{space.shape}."
            ) from None


def check_vectors(action_space: Any, env_name: str) -> None:
    """Raise `TypeError` for an environment whose actions are of another kind, and `ValueError`
    where continuous actions are not vectors of fractions between their bounds."""
    if is_discrete(action_space):
        return
    if len(action_space.shape) != 1:
        raise ValueError(
            f"`env` (={env_name}) must have actions of one axis, not {action_space!r} of shape "
            f"{action_space.shape}."
        )
    if not jnp.issubdtype(action_space.dtype, jnp.floating):
        raise ValueError(
            f"`env` (={env_name}) must have a Box of fractions for actions, not of "
            f"{jnp.dtype(action_space.dtype)}: whole numbers are `agents.envs.MultiDiscrete`."
        )
    low, high = (np.asarray(side) for side in (action_space.low, action_space.high))
    if not (low <= high).all():
        raise ValueError(
            f"`env` (={env_name}) must have actions between their bounds, which its "
            f"{action_space!r}, from {low} to {high}, has not."
        )


def check_room(action_space: Any, env_name: str) -> None:
    """Raise `ValueError` for an environment with a bounded number that has no room to vary, or
    more than float32 can halve."""
    low, high = (np.asarray(side, np.float64) for side in (action_space.low, action_space.high))
    with np.errstate(over="ignore", invalid="ignore"):  # bounds that float32 has not, told below
        half = high.astype(np.float32) / 2 - low.astype(np.float32) / 2
    if not (half > 0).all():
        raise ValueError(
            f"`env` (={env_name}) must have room in every number of an action, which its "
            f"{action_space!r}, from {low} to {high}, has not in float32."
        )
    if not (np.maximum(high - low, np.abs(high + low)) <= np.finfo(np.float32).max).all():
        raise ValueError(
            f"`env` (={env_name}) must have bounds of actions whose difference and sum are finite "
            f"in float32, which those of its {action_space!r}, from {low} to {high}, are not."
        )


def normalized_space(space: Any) -> Any:
    """Return the space of normalized observations, which have both signs; of a `Box` only."""
    if not isinstance(space, spaces.Box):
        return space
    return spaces.Box(-NORMALIZED_LIMIT, NORMALIZED_LIMIT, space.shape, jnp.float32)
