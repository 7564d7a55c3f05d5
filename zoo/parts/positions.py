"""Positions in an episode."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int


def positions(
    count: Int[Array, ""], begin: Bool[Array, " time"] | None, time: int
) -> Int[Array, " time"]:
    """The number of steps before each step in its episode.

    Integers: in bfloat16 a count stops at 256, in float32 at 16 million.

    **Arguments:**

    - `count`: that number at the first step, unless it begins an episode.
    - `begin`: shape `[time]`, or `None`.
    - `time`: the number of steps.

    **Returns:**

    Shape `[time]`.
    """
    steps = jnp.arange(time, dtype=count.dtype)
    going_on = count + steps
    if begin is None:
        return going_on
    last = jax.lax.cummax(jnp.where(begin, steps, -1))
    return jnp.where(last < 0, going_on, steps - last)
