"""Cutting rollouts into segments and taking some of them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree


def to_segments(rollout: PyTree, length: int) -> PyTree:
    """Cut `[time, env, ...]` into contiguous segments `[length, segments, ...]`.

    Segment `i * envs + e` holds the steps `i * length … (i + 1) * length - 1` of environment `e`.

    **Raises:**

    `ValueError` when time is not divisible by `length`.
    """

    def cut(x: Array) -> Array:
        time, envs = x.shape[:2]
        if time % length:
            raise ValueError(
                f"`rollout` (time {time}) must be divisible by the segment `length` (={length})."
            )
        x = x.reshape(time // length, length, envs, *x.shape[2:])
        return jnp.moveaxis(x, 1, 0).reshape(length, -1, *x.shape[3:])

    return jax.tree.map(cut, rollout)


def from_segments(segments: PyTree, envs: int) -> PyTree:
    """Undo `to_segments`: put segments `[length, segments, ...]` together to `[time, env, ...]`."""

    def join(x: Array) -> Array:
        length = x.shape[0]
        x = x.reshape(length, -1, envs, *x.shape[2:])
        return jnp.moveaxis(x, 0, 1).reshape(-1, envs, *x.shape[3:])

    return jax.tree.map(join, segments)


def to_starts(carries: PyTree) -> PyTree:
    """Flatten carries at segments' starts, `[segment, env, ...]`, in the order of `to_segments`."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), carries)


def take(table: PyTree, indices: Int[Array, " rows"], axis: int = 0) -> PyTree:
    """Take rows of every leaf at an axis; no check that the indices are in bounds."""
    where = (slice(None),) * axis + (indices,)
    return jax.tree.map(lambda x: x.at[where].get(mode="promise_in_bounds"), table)
