"""How pytrees are built, for checks and what they say."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree


def built(tree: PyTree) -> tuple[Any, list[tuple[int, ...]]]:
    """The structure of a pytree and the shapes of its leaves, to compare with another's."""
    return jax.tree.structure(tree), [jnp.shape(leaf) for leaf in jax.tree.leaves(tree)]


def described(tree: PyTree) -> PyTree:
    """The same pytree with types for leaves, such as `float32[3]`."""
    return jax.tree.map(lambda x: f"{jnp.result_type(x)}{list(jnp.shape(x))}", tree)
