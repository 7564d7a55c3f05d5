"""Sets of cells of a board as rows of bits, and exact draws from them.

A set is a vector of 32-bit words, one for each row; bit x of word y is the cell in row y and
column x, so that a board has at most 32 columns. A neighborhood is then a shift, a count is a
population count, and whatever concerns all cells takes a few operations on as many words as there
are rows.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32, UInt32

MAX_COLUMNS = 32
"""Bits of a word."""


def columns(n: int, step: int = 1) -> UInt32[Array, ""]:
    """Make a word with the bits of columns 0, `step`, 2 `step`, … below `n`, at most 32."""
    return jnp.uint32(sum(1 << x for x in range(0, n, step)))


def bit(x: Int32[Array, ""]) -> UInt32[Array, ""]:
    """Make a word with the bit of one column, or without bits outside of 0 … 31."""
    inside = (x >= 0) & (x < MAX_COLUMNS)
    return jnp.where(inside, jnp.uint32(1) << x.astype(jnp.uint32), jnp.uint32(0))


def row(board: UInt32[Array, " rows"], y: Int32[Array, ""]) -> UInt32[Array, ""]:
    """Read row `y` of a board; outside of it, an empty one."""
    # A comparison with all rows, because it fuses with its neighbors and a gather does not.
    return jnp.sum(jnp.where(_at(board, y), board, jnp.uint32(0)), dtype=jnp.uint32)


def has(board: UInt32[Array, " rows"], y: Int32[Array, ""], x: Int32[Array, ""]) -> Bool[Array, ""]:
    """Tell whether the cell in row `y` and column `x` is in a set; not outside of the board."""
    return (row(board, y) & bit(x)) != 0


def add(
    board: UInt32[Array, " rows"], y: Int32[Array, ""], word: UInt32[Array, ""]
) -> UInt32[Array, " rows"]:
    """Add the cells of a word to row `y`; nothing outside of the board."""
    return board | jnp.where(_at(board, y), word, jnp.uint32(0))


def moved(board: UInt32[Array, " rows"], rows: int) -> UInt32[Array, " rows"]:
    """Move all cells down by some rows, or up by a negative number; drop what leaves the board."""
    size = board.shape[0]
    empty = jnp.zeros((min(abs(rows), size),), jnp.uint32)
    if rows < 0:
        return jnp.concatenate([board[-rows:], empty])
    return jnp.concatenate([empty, board[: max(size - rows, 0)]])


def count(board: UInt32[Array, " rows"]) -> Int32[Array, ""]:
    """Count the cells of a set."""
    return jnp.sum(jax.lax.population_count(board).astype(jnp.int32), dtype=jnp.int32)


def cells(board: UInt32[Array, " rows"], width: int) -> Int32[Array, " cells"]:
    """Write a set as its cells row by row: 1 where it has one, else 0."""
    columns = jnp.arange(width, dtype=jnp.uint32)
    return ((board[:, None] >> columns[None]) & 1).astype(jnp.int32).ravel()


def digit(
    bits: UInt32[Array, ""], n: Int32[Array, ""]
) -> tuple[Int32[Array, ""], UInt32[Array, ""]]:
    """Make a random number below `n` from random bits, and bits for the next one.

    Read as a fraction of 2^32, `bits` times `n` has the number as its whole part; the fraction is
    left. So several numbers below n, m, … from the same 32 bits are jointly uniform up to a
    relative error of n m … / 2^32.

    **Arguments:**

    - `bits`: 32 random bits.
    - `n`: how many values the number can have, from 1 to 65,535.

    **Returns:**

    The number, and what is left of the bits.
    """
    factor = n.astype(jnp.uint32)
    # The upper half of a product of 32-bit words, without 64-bit types and without a division.
    upper = (bits >> 16) * factor + (((bits & jnp.uint32(0xFFFF)) * factor) >> 16)
    return (upper >> 16).astype(jnp.int32), bits * factor


def nth(
    board: UInt32[Array, " rows"], n: Int32[Array, ""], width: int
) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
    """Find the n-th cell of a set, counted from 0, row by row.

    **Arguments:**

    - `board`: a set of cells.
    - `n`: which one; less than the number of cells.
    - `width`: number of columns.

    **Returns:**

    Row and column.
    """
    ends = jnp.cumsum(jax.lax.population_count(board).astype(jnp.int32), dtype=jnp.int32)
    above = ends <= n
    y = jnp.sum(above, dtype=jnp.int32)
    word = row(board, y)
    # Bits of the word that come before: n less all cells of the rows above.
    rank = n - jnp.max(jnp.where(above, ends, 0))
    places = jnp.arange(width, dtype=jnp.uint32)
    up_to = jax.lax.population_count(word & ((jnp.uint32(2) << places) - jnp.uint32(1)))
    return y, jnp.sum(up_to.astype(jnp.int32) <= rank, dtype=jnp.int32)


def _at(board, y):
    return jnp.arange(board.shape[0], dtype=jnp.int32) == y
