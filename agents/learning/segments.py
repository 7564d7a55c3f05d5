"""Cutting rollouts into segments and taking some of them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree


def to_segments(rollout: PyTree, length: int) -> PyTree:
    """Cut `[time, env, ...]` into contiguous segments `[length, segments, ...]`.

    Segment `i * envs + e` holds the steps `i * length … (i + 1) * length - 1` of environment `e`.

    **Arguments:**

    - `rollout`: pytree of arrays with leading axes `[time, env]`.
    - `length`: steps per segment; a divisor of time.

    **Returns:**

    The same pytree, time-major, with `time / length * env` segments on axis 1.

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


def to_starts(carries: PyTree) -> PyTree:
    """Flatten carries at segments' starts, `[segment, env, ...]`, in the order of `to_segments`.

    **Arguments:**

    - `carries`: pytree of arrays with leading axes `[time / length, env]`.

    **Returns:**

    The same pytree with one leading axis over `time / length * env` segments.
    """
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), carries)


def take(table: PyTree, indices: Int[Array, " rows"], axis: int = 0) -> PyTree:
    """Take rows of every leaf; no check that the indices are in bounds.

    **Arguments:**

    - `table`: pytree of arrays.
    - `indices`: the rows.
    - `axis`: 0 or 1.

    **Returns:**

    The same pytree, with the rows at `axis`.
    """
    where = (slice(None),) * axis + (indices,)
    return jax.tree.map(lambda x: x.at[where].get(mode="promise_in_bounds"), table)
