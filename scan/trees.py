"""How pytrees are built, for checks and what they say."""

from itertools import zip_longest
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree


def built(tree: PyTree) -> tuple[Any, list[tuple[int, ...]]]:
    """The structure of a pytree and the shapes of its leaves, to compare with another's."""
    return jax.tree.structure(tree), [jnp.shape(leaf) for leaf in jax.tree.leaves(tree)]


def inexact(tree: PyTree) -> list[bool]:
    """Which leaves hold floating-point or complex numbers, to compare with another's."""
    return [jnp.issubdtype(jnp.result_type(x), jnp.inexact) for x in jax.tree.leaves(tree)]


def described(tree: PyTree) -> PyTree:
    """The same pytree with types for leaves, such as `float32[3]`."""
    return jax.tree.map(lambda x: f"{jnp.result_type(x)}{list(jnp.shape(x))}", tree)


def converts(x: Any, like: Any) -> bool:
    """Whether an array has another's dtype, or holds numbers that this does but for rounding."""
    given, wanted = jnp.result_type(x), like.dtype
    if jnp.iscomplexobj(x) and not jnp.issubdtype(wanted, jnp.complexfloating):
        return False
    number = jnp.issubdtype(given, jnp.number) or jnp.issubdtype(given, jnp.bool_)
    return given == wanted or (number and jnp.issubdtype(wanted, jnp.inexact))


def broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of one shape broadcasts to another shape as it is."""
    try:
        return jnp.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def first_difference(one: PyTree, other: PyTree) -> tuple[str, str]:
    """The first leaf in which two pytrees differ, as `[0].w[3, 2]`, of either."""

    def leaves(tree):
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            yield f"{jax.tree_util.keystr(path)}{list(jnp.shape(leaf))}"

    pairs = zip_longest(leaves(one), leaves(other), fillvalue="nothing more")
    return next((pair for pair in pairs if pair[0] != pair[1]), ("other settings", "its own"))
