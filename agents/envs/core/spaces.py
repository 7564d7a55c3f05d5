"""Spaces that gymnax does not have."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from gymnax.environments import spaces
from jaxtyping import Array, Bool, Int, Int32, PRNGKeyArray


class MultiDiscrete(spaces.Space):
    """Several discrete numbers at once, each with its own count of values.

    **Attributes:**

    - `nvec`: how many values each number has.
    - `shape`: `(len(nvec),)`.
    - `dtype`: int32.
    """

    def __init__(self, nvec: Sequence[int]):
        """**Arguments:**

        - `nvec`: how many values each number has; each at least 1.

        **Raises:**

        `ValueError` if a count is less than 1 or there is none.
        """
        self.nvec = tuple(int(n) for n in nvec)
        if not self.nvec or min(self.nvec) < 1:
            raise ValueError(f"`nvec` (={nvec!r}) must hold counts of at least 1.")
        self.shape = (len(self.nvec),)
        self.dtype = jnp.dtype(jnp.int32)

    def __repr__(self) -> str:
        """The counts."""
        return f"MultiDiscrete({list(self.nvec)})"

    def sample(self, key: PRNGKeyArray) -> Int32[Array, " numbers"]:
        """Draw every number uniformly."""
        counts = jnp.asarray(self.nvec, jnp.int32)
        return jax.random.randint(key, self.shape, 0, counts, jnp.int32)

    def contains(self, x: Int[Array, " numbers"]) -> Bool[Array, ""]:
        """Tell whether every number is in its range."""
        x = jnp.asarray(x)
        return jnp.all((x >= 0) & (x < jnp.asarray(self.nvec, x.dtype)))
