"""MineSweeper: click on all cells without a mine, told only how many mines are near the last."""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
from annotated_types import Interval
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from zoo.annotations import checked

from ...core.base import BaseEnvironment
from ...core.hidden import Hides
from ...core.lazy_reset import LazyReset
from ...core.one_end import OneEnd
from ...core.spaces import MultiDiscrete
from . import bitboard


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of MineSweeper; batched states have leading axes.

    `time`: steps taken, int32. `mines`: cells with a mine. `viewed`: cells without one that were
    clicked on. `exploded`: whether a mine was. The sets are uint32 of shape `(board_size,)`: bit x
    of word y is the cell in row y and column x.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    mines: Any
    viewed: Any
    exploded: Any


class MineSweeper(OneEnd[Any, EnvParams], LazyReset, Hides, BaseEnvironment):
    r"""Click on every cell of a board that has no mine.

    An action is a row and a column. The observation is the number of mines in the cell and the
    eight around it; it does not tell which cell was clicked on, so an agent needs its previous
    action. With T cells that have no mine, a new one of them gives 1 / T, one that was
    clicked on before \( -1 / (2 (T - 2)) \), and a mine \( -1/2 - 1/T \). The episode terminates
    with a mine and when all T cells are viewed, and is truncated after T steps. The best return is
    1. The same, step by step, as `MineSweeper` of the Python package `popgym` 1.0.7 with the same
    mines.

    A mine takes one random number. Mines are laid only where an episode ends (see `LazyReset`):
    1,024 boards make 3 to 4 million steps per second on two cores of a CPU.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023.
    """

    needs_previous_action = True

    @checked
    def __init__(
        self,
        board_size: Annotated[int, Interval(ge=2, le=bitboard.MAX_COLUMNS)] = 4,
        num_mines: int = 2,
    ):
        """**Arguments:**

        - `board_size`: rows and columns of the board, from 2 to 32. POPGym's Easy, Medium and Hard
            have 4, 6 and 8.
        - `num_mines`: cells with a mine, at least 1, and less than the number of cells - 2. POPGym
            has 2, 6 and 10.
        """
        self.board_size = board_size
        self.num_mines = num_mines
        if not 1 <= self.num_mines < self.cells - 2:
            raise ValueError(
                f"`num_mines` (={num_mines}) must be at least 1 and less than "
                f"board_size ** 2 - 2 (={self.cells - 2})."
            )
        super().__init__(
            observations=spaces.Discrete(min(self.num_mines + 1, 10)),
            actions=MultiDiscrete([self.board_size, self.board_size]),
            limit=self.safe_cells,
        )

    @property
    def cells(self) -> int:
        """Cells of the board."""
        return self.board_size**2

    @property
    def safe_cells(self) -> int:
        """Cells without a mine."""
        return self.cells - self.num_mines

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Int32[Array, ""], EnvState]:
        """Lay the mines, every set of cells being equally likely."""
        # Floyd's sampling of a subset: one random number for each mine, no permutation.
        bits = jax.random.bits(key, (self.num_mines,), jnp.uint32)
        cells = []
        for i in range(self.num_mines):
            last = jnp.int32(self.safe_cells + i)
            cell, _ = bitboard.digit(bits[i], last + 1)
            for other in cells:
                cell = jnp.where(cell == other, last, cell)
            cells.append(cell)
        mines = jnp.zeros((self.board_size,), jnp.uint32)
        for cell in cells:
            y, x = cell // self.board_size, cell % self.board_size
            mines = bitboard.add(mines, y, bitboard.bit(x))
        state = EnvState(
            time=jnp.int32(0),
            mines=mines,
            viewed=jnp.zeros_like(mines),
            exploded=jnp.zeros((), bool),
        )
        return jnp.int32(0), state

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: Int[Array, "2"],
        params: EnvParams,
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Click on a cell."""
        y, x = action[0], action[1]
        is_mine, is_viewed = (bitboard.has(s, y, x) for s in (state.mines, state.viewed))
        reward = jnp.where(
            is_viewed,
            jnp.float32(-0.5 / (self.safe_cells - 2)),
            jnp.float32(1 / self.safe_cells),
        )
        reward = jnp.where(is_mine, jnp.float32(-0.5 - 1 / self.safe_cells), reward)
        cell = jnp.where(is_mine, jnp.uint32(0), bitboard.bit(x))
        around = bitboard.bit(x - 1) | bitboard.bit(x) | bitboard.bit(x + 1)
        rows = jnp.arange(self.board_size, dtype=jnp.int32)
        near = jnp.where(jnp.abs(rows - y) <= 1, state.mines & around, jnp.uint32(0))
        state = EnvState(
            time=state.time + 1,
            mines=state.mines,
            viewed=bitboard.add(state.viewed, y, cell),
            exploded=state.exploded | is_mine,
        )
        return bitboard.count(near), state, reward, self.is_terminated(state, params), {}

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether a mine was clicked on, or every other cell."""
        all_cells = bitboard.columns(self.board_size)
        return state.exploded | jnp.all((state.mines | state.viewed) == all_cells)

    @property
    def hidden_space(self) -> MultiDiscrete:
        """Two possibilities for each cell."""
        return MultiDiscrete([2] * self.cells)

    def hidden(self, state: EnvState) -> Int32[Array, " cells"]:
        """Tell which cells are worth a click: without a mine, and not clicked on."""
        worth = ~(state.mines | state.viewed) & bitboard.columns(self.board_size)
        return bitboard.cells(worth, self.board_size)
