"""Steps of time in continuous time: of one length, or of lengths that come with the input."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from zoo.parts.checks import shown


def signals(inputs: int, time_step: float | str) -> int:
    """The number of entries of `x` that are a signal and no time.

    **Arguments:**

    - `inputs`: width of `x`.
    - `time_step`: the length of a step, or `"input"` where the last entry of `x` is its length.

    **Raises:**

    `ValueError` where `time_step` is neither a number above 0 nor `"input"`.
    """
    if time_step == "input":
        return inputs - 1
    if isinstance(time_step, str) or not time_step > 0:
        raise ValueError(f"`time_step` (={shown(time_step)}) must be above 0, or 'input'.")
    return inputs


def signal_and_time(
    x: Float[Array, " inputs"], time_step: float | str
) -> tuple[Float[Array, " signals"], Float[Array, ""]]:
    """What `x` says, and how long it lasts.

    **Arguments:**

    - `x`: the input, shape `[inputs]`.
    - `time_step`: as for `signals`. A time in `x` below 0 counts as 0.

    **Returns:**

    `(signal, time)`.
    """
    if isinstance(time_step, str):
        return x[:-1], jnp.maximum(x[-1], 0)
    return x, jnp.asarray(time_step, x.dtype)


def time_constants(key: Array, count: int, **bounds: float) -> Float[Array, " count"]:
    """Logarithms of times, such as time constants and steps, uniform between those of two bounds.

    **Arguments:**

    - `bounds`: the least and the greatest time, by the names that an error calls them.

    **Raises:**

    `ValueError` unless the least is above 0 and no more than the greatest.
    """
    (least, low), (greatest, high) = bounds.items()
    if not 0 < low <= high:
        raise ValueError(
            f"`{least}` (={low}) and `{greatest}` (={high}) must obey 0 < {least} <= {greatest}."
        )
    return jax.random.uniform(key, (count,), minval=math.log(low), maxval=math.log(high))


def step_biases(key: Array, count: int) -> Float[Array, " count"]:
    """Numbers whose softplus is a step of time, with a uniform logarithm from 0.001 to 0.1."""
    ends = math.log(0.001), math.log(0.1)
    step = jnp.exp(jax.random.uniform(key, (count,), minval=ends[0], maxval=ends[1]))
    return step + jnp.log(-jnp.expm1(-step))
