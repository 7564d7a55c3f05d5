"""Checks that all scans share."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree


def check_begin(begin: Any, time: int | None = None) -> Array:
    """`begin` as an array; `TypeError` where it is not of booleans, `ValueError` where it has not
    one for each of so many steps.

    Numbers are refused although a selection would take them: a flag of 0.5 is a mistake, and
    `begin_1 | begin_2` of integers is not what a tree over borders means.
    """
    flags = jnp.asarray(begin)
    if flags.dtype != bool:
        raise TypeError(f"`begin` (dtype {flags.dtype}) must be a boolean array.")
    if time is not None and flags.shape != (time,):
        raise ValueError(
            f"`begin` (shape {flags.shape}) must have the shape ({time},): a flag for each step."
        )
    return flags


def check_steps(name: str, xs: PyTree) -> int:
    """The number of steps of a sequence, or `ValueError` where there are none."""
    shapes = [jnp.shape(x) for x in jax.tree.leaves(xs)]
    if not shapes or any(len(shape) == 0 or shape[0] == 0 for shape in shapes):
        found = f"shape {shapes[0]}" if len(shapes) == 1 else f"shapes {shapes}"
        raise ValueError(f"`{name}` ({found}) must have a time axis of at least one step.")
    return shapes[0][0]
