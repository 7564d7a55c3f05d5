"""Losses whose gradients tell wrong derivatives apart, and the difference of two results."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

LEAST_SCALE = 1e-4


def total(ys: Any, weights: Any) -> Array:
    """Sum a loss over steps that is not linear in the outputs."""
    return jnp.sum(weights * jnp.sin(ys)) + jnp.sum(weights**2 * ys)


def of_state(state: Any) -> Any:
    """Sum the squares of a state's numbers."""
    leaves = [h for h in jax.tree.leaves(state) if jnp.issubdtype(h.dtype, jnp.inexact)]
    return sum((jnp.sum((h * h.conj()).real) for h in leaves), start=0.0)


def along(direction: Any, gradient: Any) -> Array:
    """Pair two pytrees as JAX pairs a direction and the gradient in it."""
    pairs = zip(jax.tree.leaves(direction), jax.tree.leaves(gradient), strict=True)
    return sum((jnp.sum((d * g).real) for d, g in pairs), start=jnp.zeros(()))


def difference(got: Any, expected: Any) -> tuple[float, str]:
    """Measure how far two pytrees are apart, leaf by leaf.

    **Returns:**

    `(number, where)`: the largest difference, in units of the largest expected value of its leaf,
    and the path of that leaf. Infinite where something is not finite, whether found or expected.

    **Raises:**

    `ValueError` where the two do not have the same leaves, or leaves of different shapes.
    """
    got, expected = (jax.tree_util.tree_leaves_with_path(tree) for tree in (got, expected))
    if [path for path, _ in got] != [path for path, _ in expected]:
        raise ValueError("`got` must have the leaves of `expected`.")
    worst = (0.0, "")
    for (path, g), (_, e) in zip(got, expected, strict=True):
        g, e, name = numbers(g), numbers(e), jax.tree_util.keystr(path)
        if g.shape != e.shape:
            raise ValueError(f"{name} has the shape {g.shape} instead of {e.shape}.")
        if not e.size:
            continue
        if not (np.all(np.isfinite(g)) and np.all(np.isfinite(e))):
            return np.inf, name
        error, scale = np.max(np.abs(g - e)), np.max(np.abs(e))
        # A leaf that is zero but for rounding has no scale of its own.
        relative = float(error) / max(float(scale), LEAST_SCALE)
        if relative > worst[0]:
            worst = (relative, name)
    return worst


def numbers(leaf: Any) -> np.ndarray:
    """Give an array to NumPy, of typed PRNG keys their data."""
    return np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)


def is_key(leaf: Any) -> bool:
    """Whether an array is one of typed PRNG keys, which NumPy does not take."""
    return jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key)
