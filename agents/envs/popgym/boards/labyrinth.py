"""What the labyrinths share: mazes, moves, the view, and resets that are only made if needed."""

import abc
from typing import Annotated, Any

import jax
import jax.numpy as jnp
from annotated_types import Ge
from gymnax.environments import spaces
from jaxtyping import Array, Int, Int32, PRNGKeyArray, UInt32

from zoo.annotations import checked

from ...core.base import BaseEnvironment
from ...core.hidden import Hides
from ...core.lazy_reset import LazyReset
from ...core.spaces import MultiDiscrete
from . import bitboard
from .maze import Maze, generate

FREE, WALL, START, GOAL = 0, 1, 2, 3
"""What is seen of a cell."""

NO_ACTION = 4
"""Shown as the previous action by a reset."""

_KINDS = 5  # POPGym's space of a cell also has "hidden", which is never seen


class Labyrinth(LazyReset, Hides, BaseEnvironment):
    """Abstract: a walk through a random maze.

    Actions are left, right, up and down. An observation has ten numbers: the 3 × 3 cells around
    the agent, row by row (0 free, 1 wall, 2 start, 3 goal), and the action that led there (4 after
    a reset). As in POPGym, at the upper or left edge of the maze the view begins with the agent's
    own row or column, and ends with a row or column of wall.

    A maze takes a loop with a turn for each room (see `generate` in `maze.py`), the work of 50 to
    200 steps, and so is made only where an episode ends (see `LazyReset`). On two cores of a CPU,
    1,024 random walks make 3 to 5 million steps per second; in episodes of 32 steps, 2.5 million
    with `size` 10, and 0.45 million with 18.

    Labyrinths give the state, which has `time`, `open`, `position` and `start`, in `reset_env` and
    `step_env`.
    """

    @checked
    def __init__(self, size: int = 10, episode_length: Annotated[int, Ge(2)] = 1024):
        """**Arguments:**

        - `size`: rows and columns of the maze, less one; even, from 6 to 30. POPGym's Easy, Medium
            and Hard have 10, 14 and 18.
        - `episode_length`: an episode has at most one step less; at least 2.
        """
        self.size = size
        largest = bitboard.MAX_COLUMNS - 2
        if self.size % 2 or not 6 <= self.size <= largest:
            raise ValueError(f"`size` (={size}) must be even, and from 6 to {largest}.")
        self.episode_length = episode_length
        super().__init__(
            observations=MultiDiscrete([_KINDS] * 9 + [NO_ACTION + 1]),
            actions=spaces.Discrete(4),
            limit=self.episode_length - 1,
        )

    def maze(self, key: PRNGKeyArray) -> Maze:
        """Draw a maze whose start is open."""
        maze = generate(key, self.size)
        y, x = maze.start
        return maze._replace(open=bitboard.add(maze.open, y, bitboard.bit(x)))

    def moved(
        self,
        open_cells: UInt32[Array, " rows"],
        position: Int32[Array, "2"],
        action: int | Int[Array, ""],
    ) -> Int32[Array, "2"]:
        """Say where an action leads: nowhere, if there is a wall or the edge of the maze."""
        way = jnp.asarray(action)
        dy = (way == 3).astype(jnp.int32) - (way == 2).astype(jnp.int32)
        dx = (way == 1).astype(jnp.int32) - (way == 0).astype(jnp.int32)
        new = position + jnp.stack([dy, dx])
        return jnp.where(bitboard.has(open_cells, new[0], new[1]), new, position)

    def view(
        self,
        state: Any,
        action: int | Int[Array, ""],
        goal: Int32[Array, "2"] | None = None,
    ) -> Int32[Array, "10"]:
        """Make the observation.

        **Arguments:**

        - `action`: the action that led to it; `NO_ACTION` after a reset.
        - `goal`: the goal's row and column, if there is one.

        **Returns:**

        The observation.
        """
        y, x = state.position
        rows, columns = (_three(at)[:, None] for at in (y, x))
        columns = columns.T
        words = jax.vmap(bitboard.row, (None, 0))(state.open, rows[:, 0])[:, None]
        cells = jnp.where((words & jax.vmap(bitboard.bit)(columns[0])[None]) != 0, FREE, WALL)
        marks = ((START, state.start),) if goal is None else ((START, state.start), (GOAL, goal))
        for kind, (mark_y, mark_x) in marks:
            cells = jnp.where((rows == mark_y) & (columns == mark_x), kind, cells)
        seen = cells.astype(jnp.int32).reshape(9)
        return jnp.concatenate([seen, jnp.asarray(action, jnp.int32)[None]])

    @property
    def hidden_space(self) -> MultiDiscrete:
        """Possibilities of each cell, then of the agent's row and column."""
        side = self.size + 1
        return MultiDiscrete([GOAL + 1] * side**2 + [side] * 2)

    def hidden(self, state: Any) -> Int32[Array, " numbers"]:
        """Tell where the agent is in the whole maze.

        A cell is wall, free or the goal; of an exploration, where it was visited, the start.
        """
        side = self.size + 1
        walls = 1 - bitboard.cells(state.open, side)
        return jnp.concatenate([self._marked(walls * WALL, state), state.position])

    @abc.abstractmethod
    def _marked(self, cells: Int32[Array, " cells"], state: Any) -> Int32[Array, " cells"]:
        """The cells with the goal, or with what was visited."""


def _three(at: Int32[Array, ""]) -> Int32[Array, "3"]:
    """The rows or columns of the view around one; -1, where nothing is, for what it lacks."""
    first = jnp.maximum(at - 1, 0)
    three = first + jnp.arange(3, dtype=jnp.int32)
    return jnp.where(three <= at + 1, three, -1)
