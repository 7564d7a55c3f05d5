"""What the MiniGrid environments share: tiles, moving, and a view that walls and doors block."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces
from jaxtyping import Array, Bool, Int, Int32

from zoo.annotations import checked

from ..core.base import BaseEnvironment
from ..core.hidden import Hides
from ..core.spaces import MultiDiscrete

LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE, DONE = range(7)

(
    EMPTY,
    WALL,
    KEY,
    BALL,
    RED_CLOSED,
    RED_OPEN,
    BLUE_CLOSED,
    BLUE_OPEN,
    UNSEEN,
) = range(9)

# MiniGrid's numbers of object, color and state, by tile. Key and ball are green.
_CODES = (
    (1, 0, 0),
    (2, 5, 0),
    (5, 1, 0),
    (6, 1, 0),
    (4, 0, 1),
    (4, 0, 0),
    (4, 2, 1),
    (4, 2, 0),
    (0, 0, 0),
)
_COUNTS = (11, 6, 3)  # how many objects, colors and states MiniGrid has

_MOST_SEEN = 31  # cells of a row of the view, for which a number has a bit each
_X_STEP, _Y_STEP = (1, 0, -1, 0), (0, 1, 0, -1)  # by direction: right, down, left, up


class MiniGrid(Hides, BaseEnvironment):
    """Abstract: a grid of tiles, of which the agent sees a square in front of it.

    The actions are MiniGrid's: turn left, turn right, forward, pick up, drop, toggle, done. An
    observation is MiniGrid's `image`, flattened: for each column of the view from left to right and
    each row from far to near, the numbers of the object, its color and its state; the agent is in
    the middle of the last row. The compass and the mission text of MiniGrid's observation are left
    out. Environments give the state, which has `time`, `x`, `y` and `direction`, in `reset_env` and
    `step_env`; y grows downwards, direction 0 is right, 1 down, 2 left, 3 up.
    """

    @checked
    def __init__(self, size: int, view: int, steps_per_cell: int):
        """**Arguments:**

        - `size`: side of the map; checked by the environment.
        - `view`: side of the square that is seen; odd, 3 to 31.
        - `steps_per_cell`: the default time limit, divided by `size` squared.
        """
        self.size, self.view = size, view
        if not 3 <= self.view <= _MOST_SEEN or self.view % 2 == 0:
            raise ValueError(f"`view` (={view}) must be odd and at least 3, at most {_MOST_SEEN}.")
        super().__init__(
            observations=MultiDiscrete(_COUNTS * self.view**2),
            actions=spaces.Discrete(7),
            limit=steps_per_cell * self.size**2,
        )

    def moved(
        self, tiles: Int32[Array, "height width"], state: Any, action: int | Int[Array, ""]
    ) -> tuple[Any, Int32[Array, ""], Int32[Array, ""]]:
        """Turn or walk; the other actions only take time.

        **Arguments:**

        - `tiles`: the map.
        - `action`: from 0 to 6.

        **Returns:**

        The state, one step later, and x and y of the cell that was in front before.
        """
        action = jnp.asarray(action, jnp.int32)
        x, y = ahead(state.x, state.y, state.direction)
        tile = tiles[y, x]
        walks = (action == FORWARD) & is_one_of(tile, (EMPTY, RED_OPEN, BLUE_OPEN))
        turn = (action == RIGHT).astype(jnp.int32) - (action == LEFT)
        state = state.replace(
            time=state.time + 1,
            x=jnp.where(walks, x, state.x),
            y=jnp.where(walks, y, state.y),
            direction=(state.direction + turn) % 4,
        )
        return state, x, y

    def look(self, tiles: Int32[Array, "height width"], state: Any) -> Int32[Array, " numbers"]:
        """Make the observation: what is seen of the map."""
        side, middle = self.view, self.view // 2
        # Seen from above, the view is turned so that the agent looks up: `to_right` cells to the
        # agent's right and `forward` cells ahead, by column and row of the view.
        to_right = jnp.arange(side, dtype=jnp.int32)[:, None] - middle
        forward = side - 1 - jnp.arange(side, dtype=jnp.int32)[None, :]
        forward_x, forward_y = ahead(0, 0, state.direction)
        x = state.x + forward * forward_x - to_right * forward_y
        y = state.y + forward * forward_y + to_right * forward_x
        height, width = tiles.shape
        inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        seen = tiles[jnp.clip(y, 0, height - 1), jnp.clip(x, 0, width - 1)]
        seen = jnp.where(inside, seen, WALL)
        visible = _visible(~is_one_of(seen, (WALL, RED_CLOSED, BLUE_CLOSED)))
        seen = jnp.where(visible, seen, UNSEEN).at[middle, side - 1].set(EMPTY)
        return jnp.asarray(_CODES, jnp.int32)[seen].ravel()


def walls(width: int, height: int) -> np.ndarray:
    """Make a map of a width and a height with walls around it."""
    tiles = np.full((height, width), WALL, np.int32)
    tiles[1:-1, 1:-1] = EMPTY
    return tiles


def put(
    tiles: Int32[Array, "height width"],
    x: int | Int[Array, ""],
    y: int | Int[Array, ""],
    tile: int | Int[Array, ""],
) -> Int32[Array, "height width"]:
    """Change one tile of a map, in column `x` and row `y`."""
    height, width = tiles.shape
    # A comparison, because it fuses with its neighbors and a scatter does not.
    rows = jnp.arange(height, dtype=jnp.int32)[:, None]
    columns = jnp.arange(width, dtype=jnp.int32)[None]
    return jnp.where((rows == y) & (columns == x), jnp.asarray(tile, jnp.int32), tiles)


def ahead(
    x: int | Int[Array, ""], y: int | Int[Array, ""], direction: Int[Array, ""]
) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
    """Go to the next cell, by column and row; directions are 0 right, 1 down, 2 left, 3 up."""
    x_step = jnp.asarray(_X_STEP, jnp.int32)[direction]
    return x + x_step, y + jnp.asarray(_Y_STEP, jnp.int32)[direction]


def is_one_of(tile: Int[Array, "*shape"], kinds: Sequence[int]) -> Bool[Array, "*shape"]:
    """Tell which tiles are of certain kinds."""
    found = tile == kinds[0]
    for kind in kinds[1:]:
        found = found | (tile == kind)
    return found


def _visible(clear: Bool[Array, "view view"]) -> Bool[Array, "view view"]:
    """Which cells of a view are seen, from those that one can see through.

    Sight spreads from the agent row by row, in each row to the right and then to the left; a cell
    that is seen and seen through shows its neighbor in that direction, the cell ahead of it and
    the cell ahead of the neighbor.
    """
    side = clear.shape[0]
    # A row is a number with a bit for each column, and sight runs through a row by doubling.
    columns = jnp.arange(side, dtype=jnp.uint32)
    rows = jnp.sum(clear.astype(jnp.uint32) << columns[:, None], axis=0, dtype=jnp.uint32)
    every = jnp.uint32(2**side - 1)
    seen, shown = [], jnp.uint32(2 ** (side // 2))
    for row in reversed(range(side)):
        in_front = jnp.uint32(0)
        # What is last in a direction has no neighbor there, and shows nothing in front of it.
        for shift, others in ((jnp.left_shift, every >> 1), (jnp.right_shift, every - 1)):
            through, steps = shift(rows[row], jnp.uint32(1)), 1
            while steps < side:
                shown = shown | (through & shift(shown, jnp.uint32(steps)))
                through, steps = through & shift(through, jnp.uint32(steps)), 2 * steps
            shown = shown & every
            lit = shown & rows[row] & others
            in_front = in_front | lit | shift(lit, jnp.uint32(1))
        seen.append(shown)
        shown = in_front
    found = jnp.stack(seen[::-1])[None] >> columns[:, None]
    return (found & jnp.uint32(1)).astype(bool)
