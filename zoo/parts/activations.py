"""Activation functions by name, so that a recipe of a cell stays serializable."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

_ACTIVATIONS: dict[str, Callable] = {
    "identity": lambda x: x,
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
}


def activation_function(name: str) -> Callable:
    """The activation function of that name; `ValueError` with the known names otherwise."""
    if name not in _ACTIVATIONS:
        raise ValueError(f"`activation` (={name!r}) must be one of {', '.join(_ACTIVATIONS)}.")
    return _ACTIVATIONS[name]
