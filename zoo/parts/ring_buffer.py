"""The last rows of a sequence that goes on."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree


class RingBuffer(eqx.Module):
    """The last rows of a sequence, the newest of which takes the oldest one's place.

    One row is written where shifting all by one place would copy them at every step. That is the
    longer part of a step of attention: its buffers outweigh its matrices in a batch.
    """

    rows: PyTree[Array]
    oldest: Int[Array, ""]
    axis: int = eqx.field(static=True)

    @classmethod
    def of(cls, rows: PyTree[Array], axis: int = 0) -> "RingBuffer":
        """Filled with arrays' rows along an axis, oldest first."""
        return cls(rows, jnp.zeros((), jnp.int32), axis)

    def __len__(self) -> int:
        """How many rows it has."""
        return jax.tree.leaves(self.rows)[0].shape[self.axis]

    def append(self, row: PyTree[Array]) -> "RingBuffer":
        """With one row more, and without its oldest."""
        if not len(self):
            return self
        put = jax.lax.dynamic_update_index_in_dim
        rows = jax.tree.map(lambda x, new: put(x, new, self.oldest, self.axis), self.rows, row)
        return RingBuffer(rows, (self.oldest + 1) % len(self), self.axis)

    def lags(self) -> Int[Array, " rows"]:
        """How many rows were appended after each."""
        return (self.oldest - 1 - jnp.arange(len(self))) % len(self)

    def at(self, lags: Int[Array, " lags"]) -> PyTree[Array]:
        """The rows after which so many were appended."""
        places = (self.oldest - 1 - lags) % len(self)
        return jax.tree.map(lambda x: jnp.take(x, places, self.axis), self.rows)

    def in_order(self) -> PyTree[Array]:
        """All rows, oldest first."""
        return self.at(jnp.arange(len(self) - 1, -1, -1)) if len(self) else self.rows
