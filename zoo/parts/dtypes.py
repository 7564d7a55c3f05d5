"""Dtypes of modules."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp


def real_dtype(module: eqx.Module) -> Any:
    """The real dtype of a module's parameters: inputs are real even where they are not."""
    dtypes = [p.dtype for p in jax.tree.leaves(eqx.filter(module, eqx.is_inexact_array))]
    return jnp.finfo(jnp.result_type(*dtypes)).dtype
