"""Positions in an episode, and what stands for them in a network."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


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


def sinusoids(position: Int[Array, ""], width: int) -> Float[Array, " width"]:
    """Encode a position by sines and cosines of wavelengths from 2π to 2π · 10,000.

    **Arguments:**

    - `position`: a whole number.
    - `width`: how many numbers stand for it.

    **Returns:**

    Sines at even entries and cosines at odd ones, in float32 at least: in bfloat16 there are no odd
    numbers above 256.

    Source: *Attention Is All You Need*, Vaswani et al. (2017), section 3.5.
    """
    i = jnp.arange(width)
    frequency = 10_000.0 ** (-2 * (i // 2) / width)
    angle = position.astype(frequency.dtype) * frequency
    return jnp.where(i % 2 == 0, jnp.sin(angle), jnp.cos(angle))
