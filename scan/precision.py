"""The precision of products that stand for sums of elementwise products, and common dtypes."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

# On a GPU the default product of float32 arrays has ten bits of mantissa.
EXACTLY = jax.lax.Precision.HIGHEST

exact_matmul = partial(jnp.matmul, precision=EXACTLY)
"""`jnp.matmul` for what states go through at every step."""


def promoted(*arrays: Any) -> jnp.dtype:
    """The common dtype of arrays that are meant to be mixed, also where JAX promotes strictly."""
    with jax.numpy_dtype_promotion("standard"):
        return jnp.result_type(*arrays)


def at_least_single(*arrays: Any) -> jnp.dtype:
    """Their common dtype, or float32 in the place of one that has fewer bits."""
    return promoted(promoted(*arrays), jnp.float32)
