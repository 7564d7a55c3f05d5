"""What the two hallway environments share: the map, moving, and seeing one room at a time."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from ..core.base import BaseEnvironment
from ..core.hidden import Hides

HEIGHT, WIDTH = 17, 15
START = (8, 2)
CORNERS = ((1, 1), (1, 3), (15, 1), (15, 3))
"""Where cookies and keys can be: two places in the north room, two in the south one."""

LAYOUT = (
    "###############",
    "#111###########",
    "#111###########",
    "#111###########",
    "##0############",
    "##0############",
    "##0#########33#",
    "##0#########33#",
    "##033333333333#",
    "##0#########33#",
    "##0#########33#",
    "##0############",
    "##0############",
    "#222###########",
    "#222###########",
    "#222###########",
    "###############",
)
"""The map: `#` is a wall, a digit is the room that a cell belongs to."""

_ROW_STEP, _COLUMN_STEP = (-1, 0, 1, 0), (0, 1, 0, -1)


class Hallway(Hides, BaseEnvironment):
    """Abstract: rooms around a hallway, of which only the present one is seen.

    The actions are up, right, down and left, in this order. With probability `slip` a move goes in
    one of the other three directions, each as likely; a move into a wall changes nothing. An
    observation is a stack of planes of zeros and ones, one entry per cell: where the agent is,
    which cells are in the agent's room, then a plane for each kind of object, where it is in that
    room. Nothing terminates; the time limit is 10,000 steps. Environments give the state, which has
    `time`, `row` and `column`, in `reset_env` and `step_env`.
    """

    objects: tuple[str, ...]
    """The kinds of objects, in the order of their planes; an environment names its own."""

    def __init__(self, slip: float, layout: Sequence[str], places: Sequence[tuple[int, int]]):
        """**Arguments:**

        - `slip`: the probability that a move goes elsewhere.
        - `layout`: 17 rows of 15 characters: `#` a wall, a digit the room that the cell belongs to.
        - `places`: cells of the start and the objects, which must not be walls.
        """
        if not 0 <= slip <= 1:
            raise ValueError(f"`slip` (={slip}) must be from 0 to 1.")
        self.slip = float(slip)
        rows = list(layout)
        if len(rows) != HEIGHT or any(len(row) != WIDTH for row in rows):
            raise ValueError(f"`layout` (={layout!r}) must have {HEIGHT} rows of {WIDTH} cells.")
        if set("".join(rows)) - set("#0123456789"):
            raise ValueError(f"`layout` (={layout!r}) must be made of `#` and digits.")
        # A wall is room -1.
        self.rooms = np.array([[-1 if c == "#" else int(c) for c in row] for row in rows], np.int32)
        border = (self.rooms[0], self.rooms[-1], self.rooms[:, 0], self.rooms[:, -1])
        if (np.concatenate(border) >= 0).any():
            raise ValueError(f"`layout` (={layout!r}) must have walls around it.")
        for place in places:
            if self.rooms[place] < 0:
                raise ValueError(f"`layout` (={layout!r}) must have no wall at {place}.")
        super().__init__(
            observations=spaces.Box(0.0, 1.0, (2 + len(self.objects), HEIGHT, WIDTH), jnp.float32),
            actions=spaces.Discrete(4),
            limit=10_000,
        )

    def walk(
        self, key: PRNGKeyArray, state: Any, action: int | Int[Array, ""]
    ) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
        """Move, as far as walls allow it and unless the move slips; give the row and the column."""
        key_slip, key_other = jax.random.split(key)
        slips = jax.random.uniform(key_slip, dtype=jnp.float32) < self.slip
        other = jax.random.randint(key_other, (), 1, 4, jnp.int32)
        action = jnp.asarray(action, jnp.int32)
        move = jnp.where(slips, (action + other) % 4, action)
        row = state.row + jnp.asarray(_ROW_STEP, jnp.int32)[move]
        column = state.column + jnp.asarray(_COLUMN_STEP, jnp.int32)[move]
        free = jnp.asarray(self.rooms)[row, column] >= 0
        return jnp.where(free, row, state.row), jnp.where(free, column, state.column)

    def look(self, state: Any, *objects: Bool[Array, "17 15"]) -> Float32[Array, "planes 17 15"]:
        """Make the observation: what is seen from a cell.

        **Arguments:**

        - `state`: the state, with `row` and `column`.
        - `objects`: where the objects of each kind are, in all rooms.

        **Returns:**

        The planes.
        """
        agent = at((state.row, state.column))
        rooms = jnp.asarray(self.rooms)
        seen = rooms == rooms[state.row, state.column]
        planes = jnp.stack([agent, seen, *(plane & seen for plane in objects)])
        return planes.astype(jnp.float32)

    def is_terminated(self, state: Any, params: EnvParams) -> Bool[Array, ""]:
        """Answer no: rewards go on until the time limit."""
        return jnp.zeros_like(state.time, bool)


def at(
    *places: tuple[Any, Any], present: Bool[Array, " places"] | None = None
) -> Bool[Array, "17 15"]:
    """Make the plane of some places.

    **Arguments:**

    - `places`: rows and columns.
    - `present`: which of them count; all of them if `None`.

    **Returns:**

    True at the places.
    """
    rows = jnp.arange(HEIGHT, dtype=jnp.int32)[:, None]
    columns = jnp.arange(WIDTH, dtype=jnp.int32)[None]
    plane = jnp.zeros((HEIGHT, WIDTH), bool)
    for number, (row, column) in enumerate(places):
        cell = (rows == row) & (columns == column)
        plane = plane | (cell if present is None else cell & present[number])
    return plane
