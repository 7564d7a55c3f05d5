"""Random mazes: the hunt-and-kill algorithm on rows of bits."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, PRNGKeyArray, UInt32

from . import bitboard

Cell = Int32[Array, "2"]


class Maze(NamedTuple):
    """A maze of `size + 1` rows and columns, walls included.

    **Attributes:**

    - `open`: the cells that are not wall, as rows of bits, without the entrances.
    - `start`, `end`: row and column of two cells in opposite outer walls.
    """

    open: UInt32[Array, " rows"]
    start: Cell
    end: Cell


def generate(key: PRNGKeyArray, size: int, draws: int | None = None) -> Maze:
    r"""Draw a maze with its entrances as `mazelib` 0.9 does for POPGym.

    Rooms are the cells in odd rows and columns. A walk goes from room to room, through the wall
    between them, to a random neighbor that no walk has been in, until there is none; then a room is
    drawn and, if it has been visited, the next walk begins there. After
    `draws` such draws the maze is left as it is: with a small probability some rooms are closed.

    Most draws hit a room where no walk can begin. How many do so in a row has a geometric
    distribution, and the room that ends the row is uniform among those where one can begin. So each
    turn of the loop here opens one room, and there are always (number of rooms) - 1 turns.

    **Arguments:**

    - `size`: rows and columns less one; even.
    - `draws`: by default, and in `mazelib`, one for each cell, walls included.

    **Returns:**

    The maze.
    """
    rooms_across = size // 2
    bits = jax.random.bits(key, (rooms_across**2, 2), jnp.uint32)
    n = jnp.int32(rooms_across)
    y, rest = bitboard.digit(bits[0, 0], n)
    x, _ = bitboard.digit(rest, n)
    y, x = 2 * y + 1, 2 * x + 1
    grid = bitboard.add(jnp.zeros((size + 1,), jnp.uint32), y, bitboard.bit(x))
    draws_left = jnp.int32((size + 1) ** 2 if draws is None else draws)

    def turn(carry, bits):
        return _open_one_room(carry, bits, size), None

    (grid, *_), _ = jax.lax.scan(turn, (grid, y, x, draws_left), bits[1:])
    return Maze(grid, *_entrances(bits[0, 1], size))


def _open_one_room(carry, bits, size):
    """Walk on from (y, x), or from elsewhere if there is no way on, by one room."""
    grid, y, x, draws_left = carry
    rows = jnp.arange(size + 1, dtype=jnp.int32)
    rooms = jnp.where(rows % 2 == 1, bitboard.columns(size, 2) << 1, jnp.uint32(0))
    closed = rooms & ~grid
    beside = closed << 2 | closed >> 2 | bitboard.moved(closed, 2) | bitboard.moved(closed, -2)
    where_to_begin = grid & beside
    number = bitboard.count(where_to_begin)
    stuck = ~bitboard.has(where_to_begin, y, x)

    draws_left -= jnp.where(stuck, _draws(bits[0], number, (size // 2) ** 2), 0)
    place, rest = bitboard.digit(bits[1], number)
    new_y, new_x = bitboard.nth(where_to_begin, place, size + 1)
    y, x = jnp.where(stuck, new_y, y), jnp.where(stuck, new_x, x)

    here = bitboard.row(closed, y)
    ways = [
        bitboard.has(closed, y - 2, x),
        bitboard.has(closed, y + 2, x),
        (here & bitboard.bit(x - 2)) != 0,
        (here & bitboard.bit(x + 2)) != 0,
    ]
    # The chosen way is the one that has `skip` open ways before it.
    before = [sum((way.astype(jnp.int32) for way in ways[:i]), jnp.int32(0)) for i in range(5)]
    skip, _ = bitboard.digit(rest, before[4])
    up, down, left, right = (
        (way & (b == skip)).astype(jnp.int32) for way, b in zip(ways, before[:4], strict=True)
    )
    # Out of draws: nothing moves any more, and the next turn is stuck again.
    goes = (draws_left >= 0).astype(jnp.int32)
    dy, dx = (down - up) * goes, (right - left) * goes
    grid = bitboard.add(grid, y + dy, bitboard.bit(x + dx))
    grid = bitboard.add(grid, y + 2 * dy, bitboard.bit(x + 2 * dx))
    return grid, y + 2 * dy, x + 2 * dx, draws_left


def _draws(bits, number, rooms):
    """How many rooms are drawn until one of `number` among all `rooms` comes: geometric."""
    # In (0, 1], so that the logarithm is finite.
    uniform: Float32[Array, ""] = (bits.astype(jnp.float32) + 1) * jnp.float32(2**-32)
    other = jnp.log1p(-number.astype(jnp.float32) / jnp.float32(rooms))
    return 1 + jnp.floor(jnp.log(uniform) / other).astype(jnp.int32)


def _entrances(bits, size) -> tuple[Cell, Cell]:
    """Two cells in opposite outer walls, each beside a room."""
    n = jnp.int32(size // 2)
    side, rest = bitboard.digit(bits, jnp.int32(4))
    first, rest = bitboard.digit(rest, n)
    second, _ = bitboard.digit(rest, n)
    near, far = jnp.where(side % 2 == 0, 0, size), jnp.where(side % 2 == 0, size, 0)
    start = jnp.stack([near, 2 * first + 1]).astype(jnp.int32)
    end = jnp.stack([far, 2 * second + 1]).astype(jnp.int32)
    across = side >= 2
    return jnp.where(across, start[::-1], start), jnp.where(across, end[::-1], end)
