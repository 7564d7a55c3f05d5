"""Positions in an episode."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def positions(
    count: Float[Array, ""], begin: Bool[Array, " time"] | None, time: int
) -> Float[Array, " time"]:
    """The number of steps before each step in its episode.

    **Arguments:**

    - `count`: that number at the first step, unless it begins an episode.
    - `begin`: shape `[time]`, or `None`.
    - `time`: the number of steps.

    **Returns:**

    Shape `[time]`.
    """
    steps = jnp.arange(time)
    going_on = count + steps.astype(count.dtype)
    if begin is None:
        return going_on
    last = jax.lax.cummax(jnp.where(begin, steps, -1))
    return jnp.where(last < 0, going_on, (steps - last).astype(count.dtype))
