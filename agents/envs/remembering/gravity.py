"""Gravity: a force that is not seen pulls down, and a button turns it off."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from zoo.annotations import Count, Share, checked, fitted

from ..core.base import BaseEnvironment
from ..core.hidden import Hides
from ..core.one_end import OneEnd

UP, RIGHT, DOWN, LEFT = range(4)


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of Gravity; batched states have leading axes.

    `time`: steps taken, int32. `row`, `column`: where the agent is, int32; row 0 is the top.
    `force`: whether the force is on, Boolean.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    row: Any
    column: Any
    force: Any


class Gravity(OneEnd[Any, EnvParams], Hides, BaseEnvironment):
    """Reach the cookie; while the force is on, up mostly is down, and the force is not seen.

    The observation is the agent's cell, `row * columns + column`. The actions are up, right, down
    and left, in this order; a move against the border or a wall changes nothing. While the force is
    on, up becomes down with probability `pull`. Entering the button's cell from another one turns
    the force off if it is on, and on if it is off. Reaching the cookie gives 1 and terminates;
    every other step gives 0. An episode begins in the start's cell with the force on, and has at
    most 100 steps.

    By default all cells above the bottom row are walls but the left column, so that the way back
    from the button leads through the cells of the way to it: with a memory ten steps are enough,
    and no memoryless policy is optimal. On the open grid, `walls=()`, one is.

    Source: Toro Icarte et al., "The Act of Remembering: a Study in Partially Observable
    Reinforcement Learning", 2020.
    """

    @checked
    def __init__(
        self,
        rows: Count = 3,
        columns: Count = 5,
        start: Any = None,
        cookie: Any = None,
        button: Any = None,
        pull: Share = 0.9,
        walls: Any = None,
    ):
        """**Arguments:**

        - `rows`: height of the grid; at least 1.
        - `columns`: width of the grid; at least 1.
        - `start`: `(row, column)` where an episode begins; the bottom left by default.
        - `cookie`: `(row, column)` of the cookie; the top left by default.
        - `button`: `(row, column)` of the button; the bottom right by default.
        - `pull`: the probability that up becomes down while the force is on.
        - `walls`: a sequence of `(row, column)` that cannot be entered; by default every cell that
            is neither in the bottom row nor in the left column.

        **Raises:**

        `TypeError` or `ValueError` if a size or a place is not made of integers, a place is outside
        the grid or on a wall, the cookie is where the start or the button is, or `pull` is not a
        probability.
        """
        self.rows = rows
        self.columns = columns
        bottom, right = self.rows - 1, self.columns - 1
        self.start = self._cell("start", (bottom, 0) if start is None else start)
        self.cookie = self._cell("cookie", (0, 0) if cookie is None else cookie)
        self.button = self._cell("button", (bottom, right) if button is None else button)
        for argument, place in (("start", self.start), ("button", self.button)):
            if self.cookie == place:
                raise ValueError(f"`cookie` (={self.cookie}) must not be where `{argument}` is.")
        if walls is None:
            walls = [(row, column) for row in range(bottom) for column in range(1, self.columns)]
        if not isinstance(walls, Sequence):
            raise TypeError(f"`walls` (={walls!r}) must be a sequence of (row, column).")
        self.walls = tuple(self._cell("walls", wall) for wall in walls)
        self._closed = np.zeros((self.rows, self.columns), bool)
        for wall in self.walls:
            self._closed[wall] = True
        for argument in ("start", "cookie", "button"):
            if getattr(self, argument) in self.walls:
                raise ValueError(
                    f"`{argument}` (={getattr(self, argument)}) must not be on one of the `walls` "
                    f"(={self.walls}); `walls=()` is the open grid."
                )
        self.pull = pull
        super().__init__(
            observations=spaces.Discrete(self.rows * self.columns),
            actions=spaces.Discrete(4),
            limit=100,
        )

    def _cell(self, argument: str, value: Any) -> tuple[int, int]:
        if not isinstance(value, Sequence) or len(value) != 2:
            raise TypeError(f"`{argument}` (={value!r}) must be two integers, (row, column).")
        row, column = (fitted(argument, number, int) for number in value)
        if not (0 <= row < self.rows and 0 <= column < self.columns):
            raise ValueError(
                f"`{argument}` (={value!r}) must be inside the grid of rows (={self.rows}) "
                f"times columns (={self.columns})."
            )
        return row, column

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Int32[Array, ""], EnvState]:
        """Begin in the start's cell with the force on."""
        row, column = map(jnp.int32, self.start)
        state = EnvState(time=jnp.int32(0), row=row, column=column, force=jnp.bool_(True))
        return self._observe(state), state

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Move."""
        pulled = state.force & (jax.random.uniform(key, dtype=jnp.float32) < self.pull)
        move = jnp.where((action == UP) & pulled, DOWN, jnp.asarray(action, jnp.int32))
        down = (move == DOWN).astype(jnp.int32) - (move == UP)
        right = (move == RIGHT).astype(jnp.int32) - (move == LEFT)
        row = jnp.clip(state.row + down, 0, self.rows - 1)
        column = jnp.clip(state.column + right, 0, self.columns - 1)
        wall = jnp.asarray(self._closed)[row, column]
        row, column = jnp.where(wall, state.row, row), jnp.where(wall, state.column, column)
        moved = (row != state.row) | (column != state.column)
        pressed = moved & (row == self.button[0]) & (column == self.button[1])
        state = EnvState(time=state.time + 1, row=row, column=column, force=state.force ^ pressed)
        reached = self.is_terminated(state, params)
        return self._observe(state), state, reached.astype(jnp.float32), reached, {}

    def _observe(self, state: EnvState) -> Int32[Array, ""]:
        return state.row * self.columns + state.column

    def is_terminated(self, state: Any, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether the agent is at the cookie."""
        return (state.row == self.cookie[0]) & (state.column == self.cookie[1])

    @property
    def hidden_space(self) -> spaces.Discrete:
        """Off or on."""
        return spaces.Discrete(2)

    def hidden(self, state: EnvState) -> Int32[Array, ""]:
        """Tell whether the force is on."""
        return state.force.astype(jnp.int32)
