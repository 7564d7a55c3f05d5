"""Cutting rollouts into segments and taking some of them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree

from zoo.parts.checks import check_counts


def to_segments(rollout: PyTree, length: int) -> PyTree:
    """Cut `[time, env, ...]` into contiguous segments `[length, segments, ...]`.

    Of `n` segments in each environment, segment `e * n + i` holds the steps `i * length … (i + 1) *
    length - 1` of environment `e`: where environments are split over devices, so are segments.

    **Raises:**

    `ValueError` when time is not divisible by `length`, or that is no whole number of at least 1.
    """
    check_counts(1, length=length)

    def cut(x: Array) -> Array:
        time, envs = x.shape[:2]
        if time % length:
            raise ValueError(
                f"`rollout` (time {time}) must be divisible by the segment `length` (={length})."
            )
        x = x.reshape(time // length, length, envs, *x.shape[2:])
        return jax.lax.collapse(jnp.moveaxis(x, 0, 2), 1, 3)

    return jax.tree.map(cut, rollout)


def from_segments(segments: PyTree, envs: int) -> PyTree:
    """Undo `to_segments`: put segments `[length, segments, ...]` together to `[time, env, ...]`."""

    def join(x: Array) -> Array:
        length, segments = x.shape[:2]
        x = x.reshape(length, envs, segments // envs, *x.shape[2:])
        return jax.lax.collapse(jnp.moveaxis(x, 2, 0), 0, 2)

    return jax.tree.map(join, segments)


def to_starts(carries: PyTree) -> PyTree:
    """Flatten carries at segments' starts, `[segment, env, ...]`, in the order of `to_segments`."""
    return jax.tree.map(lambda x: jax.lax.collapse(jnp.moveaxis(x, 0, 1), 0, 2), carries)


def take(table: PyTree, indices: Int[Array, "groups rows"], axis: int = 0) -> PyTree:
    """Take as many rows of every group, where an axis of every leaf is groups end to end.

    No check is made that the indices, which count from each group's first row, are in bounds.

    **Returns:**

    The rows, group by group: `groups * rows` along the axis.
    """
    groups, rows = indices.shape
    before = (slice(None),) * axis

    def of_groups(x: Array) -> Array:
        parts = x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])
        pick = lambda part, i: part.at[(*before, i)].get(mode="promise_in_bounds")  # noqa: E731
        picked = jax.vmap(pick, (axis, 0), axis)(parts, indices)
        return picked.reshape(*x.shape[:axis], groups * rows, *x.shape[axis + 1 :])

    return jax.tree.map(of_groups, table)


def numbers(table: PyTree, indices: Int[Array, "groups rows"]) -> Int[Array, " all"]:
    """Number the rows that `take` takes from 0 to the table's end, in its order."""
    groups, _ = indices.shape
    each = len(jax.tree.leaves(table)[0]) // groups
    return (indices + each * jnp.arange(groups, dtype=indices.dtype)[:, None]).reshape(-1)
