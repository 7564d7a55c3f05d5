"""Battleship: find hidden ships, told only whether the last shot hit."""

import itertools
from collections.abc import Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
from annotated_types import Interval
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray, UInt32

from zoo.annotations import checked

from ...core.base import BaseEnvironment
from ...core.hidden import Hides
from ...core.lazy_reset import LazyReset
from ...core.spaces import MultiDiscrete
from . import bitboard


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of Battleship; batched states have leading axes.

    `time`: steps taken, int32. `ships`: cells under which there is a ship; `shots`: cells shot at.
    Both are uint32 of shape `(board_size,)`: bit x of word y is the cell in row y and column x.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    ships: Any
    shots: Any


class Battleship(LazyReset, Hides, BaseEnvironment):
    r"""Shoot at cells of a board until every part of every ship is hit.

    An action is a row and a column. The observation is 1 if it hit a part of a ship that had not
    been hit before, otherwise 0; it does not tell where the shot went, so an agent needs its
    previous action. A hit gives 1 / (parts of ships), any other shot
    \( -1 / (n^2 - \text{parts}) \) on a board of n × n cells: the best return is 1, and shooting at
    every cell once gives 0. The episode terminates with the last part, and is truncated after
    n² shots (both, if the last shot hits the last part). The same, step by step, as `Battleship` of
    the Python package `popgym` 1.0.7 with the same ships.

    POPGym places the ships one after the other, each at a random place and in a random direction,
    and tries again where one does not fit. Then every legal place for a ship is equally likely.
    Here a place is drawn from all legal ones at once: the same distribution without a loop of
    unknown length. That is still far more work than a step, and so is done only where an episode
    ends (see `LazyReset`): 1,024 boards make 2 to 4 million steps per second on two cores of a CPU.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023.
    """

    needs_previous_action = True

    @checked
    def __init__(
        self,
        board_size: Annotated[int, Interval(ge=1, le=bitboard.MAX_COLUMNS)] = 10,
        ship_sizes: Sequence[int] = (2, 3, 3, 4),
    ):
        """**Arguments:**

        - `board_size`: rows and columns of the board, from 1 to 32. POPGym's Easy, Medium and Hard
            have 8, 10 and 12.
        - `ship_sizes`: a sequence of how many cells each ship covers, from 1 to `board_size`, in
            the order of placing. The ships before one of size s must cover less than n (n // s)
            cells of the n², so that it fits wherever they are, and all together less than n².
        """
        self.board_size = n = board_size
        self.ship_sizes = tuple(ship_sizes)
        if not self.ship_sizes or not all(1 <= size <= n for size in self.ship_sizes):
            raise ValueError(
                f"`ship_sizes` (={ship_sizes!r}) must be at least one size from 1 to "
                f"board_size (={n})."
            )
        # The board's rows can be cut into n (n // s) pieces of s cells that do not overlap: where
        # fewer cells are covered, one of the pieces is free.
        covered = itertools.accumulate(self.ship_sizes, initial=0)
        fits = all(c < n * (n // s) for c, s in zip(covered, self.ship_sizes, strict=False))
        if not fits or self.parts >= n**2:
            raise ValueError(
                f"`ship_sizes` (={ship_sizes!r}) must leave room: the ships before one of size s "
                f"must cover less than n * (n // s) cells, and all less than n ** 2, with "
                f"n = board_size (={n})."
            )
        super().__init__(observations=spaces.Discrete(2), actions=MultiDiscrete([n, n]), limit=n**2)

    @property
    def parts(self) -> int:
        """Cells that all ships cover together."""
        return sum(self.ship_sizes)

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Int32[Array, ""], EnvState]:
        """Place the ships."""
        ships = jnp.zeros((self.board_size,), jnp.uint32)
        bits = jax.random.bits(key, (len(self.ship_sizes),), jnp.uint32)
        for i, size in enumerate(self.ship_sizes):
            ships = self._place(ships, size, bits[i])
        shots = jnp.zeros_like(ships)
        return jnp.int32(0), EnvState(time=jnp.int32(0), ships=ships, shots=shots)

    def _place(
        self, ships: UInt32[Array, " rows"], size: int, bits: UInt32[Array, ""]
    ) -> UInt32[Array, " rows"]:
        """Add a ship of `size` cells at one of the places where it fits."""
        n = self.board_size
        free = ~ships & bitboard.columns(n)
        # Cells at which a ship that goes to the right, or down, can begin.
        right = down = free
        for i in range(1, size):
            right &= free >> i
            down &= bitboard.moved(free, -i)
        # A ship of one cell lies neither way: each of its places is there twice.
        places = jnp.concatenate([right, down])
        place, _ = bitboard.digit(bits, bitboard.count(places))
        line, x = bitboard.nth(places, place, n)
        rows = jnp.arange(n, dtype=jnp.int32)
        is_right = line < n
        first = jnp.where(is_right, line, line - n)
        last = jnp.where(is_right, first, first + size - 1)
        cells = jnp.where(is_right, bitboard.columns(size), jnp.uint32(1)) << x.astype(jnp.uint32)
        return ships | jnp.where((rows >= first) & (rows <= last), cells, jnp.uint32(0))

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: Int[Array, "2"],
        params: EnvParams,
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Shoot at a cell."""
        y, x = action[0], action[1]
        hit = bitboard.has(state.ships & ~state.shots, y, x)
        shots = bitboard.add(state.shots, y, bitboard.bit(x))
        reward = jnp.where(
            hit,
            jnp.float32(1 / self.parts),
            jnp.float32(-1 / (self.board_size**2 - self.parts)),
        )
        state = EnvState(time=state.time + 1, ships=state.ships, shots=shots)
        return hit.astype(jnp.int32), state, reward, self.is_terminated(state, params), {}

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether every part of every ship is hit."""
        return jnp.all((state.ships & ~state.shots) == 0)

    @property
    def hidden_space(self) -> MultiDiscrete:
        """Two possibilities for each cell."""
        return MultiDiscrete([2] * self.board_size**2)

    def hidden(self, state: EnvState) -> Int32[Array, " cells"]:
        """Tell where parts of ships are that were not hit."""
        return bitboard.cells(state.ships & ~state.shots, self.board_size)
