"""Normalizations with nothing to learn, along the last axis.

Halves are normalized in float32: at zero the derivative of 1 / √(x + ε) is no number of float16,
and ε itself may be none. Of one vector the mean is a scalar: XLA has a broadcast less.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from zoo.parts.dtypes import widened


def layer_norm(x: Float[Array, "*axes n"], epsilon: float = 1e-5) -> Float[Array, "*axes n"]:
    """Shift and scale to mean 0 and variance 1."""
    wide = widened(x)
    return _narrowed(_scaled(wide - jnp.mean(wide, -1, keepdims=x.ndim > 1), epsilon), x)


def rms_norm(x: Float[Array, "*axes n"], epsilon: float = 1e-5) -> Float[Array, "*axes n"]:
    """Scale to a mean square of 1, of vectors of any size: products of inputs are large."""
    wide = widened(x)
    largest = jnp.max(jnp.abs(jax.lax.stop_gradient(wide)), -1, keepdims=x.ndim > 1)
    # The squares of larger ones overflow, and the cube of what they are multiplied by vanishes.
    many = float(jnp.finfo(wide.dtype).max) ** 0.25
    smaller = jnp.where(largest > many, 1 / largest, 1)
    return _narrowed(_scaled(wide * smaller, epsilon * smaller**2), x)


def unit(x: Float[Array, "*axes n"]) -> Float[Array, "*axes n"]:
    """Scale to length 1; what is shorter than a millionth stays short."""
    wide = widened(x)
    square = jnp.sum(wide**2, -1, keepdims=x.ndim > 1)
    return _narrowed(wide * jax.lax.rsqrt(square + 1e-12), x)


def _scaled(x: Array, epsilon: Any) -> Array:
    return x * jax.lax.rsqrt(jnp.mean(x**2, -1, keepdims=x.ndim > 1) + epsilon)


def _narrowed(wide: Array, x: Array) -> Array:
    """In the precision of `x`, of which whole numbers have none."""
    return wide.astype(x.dtype) if jnp.issubdtype(x.dtype, jnp.inexact) else wide
