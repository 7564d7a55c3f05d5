"""Dtypes of modules."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from scan.precision import at_least_single


def real_dtype(module: eqx.Module) -> Any:
    """The real dtype of a module's parameters, or JAX's float where it has none: inputs are real
    even where parameters are not."""
    dtypes = [p.dtype for p in jax.tree.leaves(eqx.filter(module, eqx.is_inexact_array))]
    return jnp.finfo(jnp.result_type(*(dtypes or [float]))).dtype


def widened(x: Array) -> Array:
    """Return the same numbers in 32 bits at least."""
    return x.astype(at_least_single(x.dtype))


def to_complex(real: Array, imag: Array) -> Array:
    """Join real and imaginary parts, in 32 bits each at least: there are no complex half floats."""
    dtype = at_least_single(real, imag)
    return jax.lax.complex(real.astype(dtype), imag.astype(dtype))
