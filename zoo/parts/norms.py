"""Normalizations with nothing to learn, along the last axis.

Halves are normalized in float32: at zero the derivative of 1 / √(x + ε) is no number of float16,
and ε itself may be none. Of one vector the mean is a scalar: XLA has a broadcast less. What is
squared is smaller by a power of two, which rounds nothing: the squares of large vectors would
overflow. By a smaller one the cube of 1 / √ε would, in the derivative.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from zoo.parts.dtypes import widened


def layer_norm(x: Float[Array, "*axes n"], epsilon: float = 1e-5) -> Float[Array, "*axes n"]:
    """Shift and scale to mean 0 and variance 1."""
    wide = widened(x)
    return _narrowed(rms_norm(wide - jnp.mean(wide, -1, keepdims=x.ndim > 1), epsilon), x)


def rms_norm(x: Float[Array, "*axes n"], epsilon: float = 1e-5) -> Float[Array, "*axes n"]:
    """Scale to a mean square of 1."""
    small = 2.0**-30
    wide = small * widened(x)
    square = jnp.mean(wide**2, -1, keepdims=x.ndim > 1)
    return _narrowed(wide * jax.lax.rsqrt(square + epsilon * small**2), x)


def unit(x: Float[Array, "*axes n"]) -> Float[Array, "*axes n"]:
    """Scale to length 1; what is shorter than a millionth stays short."""
    small = 2.0**-15
    wide = small * widened(x)
    square = jnp.sum(wide**2, -1, keepdims=x.ndim > 1)
    return _narrowed(wide * jax.lax.rsqrt(square + 1e-12 * small**2), x)


def _narrowed(wide: Array, x: Array) -> Array:
    """In the precision of `x`, of which whole numbers have none."""
    return wide.astype(x.dtype) if jnp.issubdtype(x.dtype, jnp.inexact) else wide
