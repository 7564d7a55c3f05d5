"""LabyrinthExplore: visit every cell of a maze."""

from typing import Any

import jax.numpy as jnp
from flax import struct
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from . import bitboard
from .labyrinth import NO_ACTION, START, Labyrinth


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of LabyrinthExplore; batched states have leading axes.

    `time`: steps taken. `open`: the cells that are not wall; `explored`: those that the agent has
    been in. Both are uint32 of shape `(size + 1,)`: bit x of word y is the cell in row y and column
    x. `position`, `start`: row and column of the agent and of where it began, shape `(2,)`. All but
    the sets are int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    open: Any
    explored: Any
    position: Any
    start: Any


class LabyrinthExplore(Labyrinth):
    r"""Walk through a maze, from an opening in its outer wall, until every cell has been visited.

    A step into a cell that has not been visited gives 1 / (number of cells, without the start);
    any other step -1 / `episode_length`. The episode terminates when no cell is left, and is
    truncated after `episode_length` - 1 steps (both, if the last step enters the last cell). The
    best return is 1 less the steps that lead back, \( 1 - (f - d) / 1024 \) with f cells of which
    the farthest is d steps from the start. The same, step by step, as `LabyrinthExplore` of the
    Python package `popgym` 1.0.7 in the same maze; mazes have the same distribution. POPGym's
    authors have found that memory is not needed here.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023.
    """

    def reset_env(
        self, key: PRNGKeyArray, params: EnvParams
    ) -> tuple[Int32[Array, "10"], EnvState]:
        """Enter a new maze."""
        maze = self.maze(key)
        y, x = maze.start
        state = EnvState(
            time=jnp.int32(0),
            open=maze.open,
            explored=bitboard.add(jnp.zeros_like(maze.open), y, bitboard.bit(x)),
            position=maze.start,
            start=maze.start,
        )
        return self.view(state, NO_ACTION), state

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Int32[Array, "10"], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Move."""
        position = self.moved(state.open, state.position, action)
        y, x = position
        cells = bitboard.count(state.open) - 1
        reward = jnp.where(
            bitboard.has(state.explored, y, x),
            jnp.float32(-1 / self.episode_length),
            1 / cells.astype(jnp.float32),
        )
        state = state.replace(  # pyright: ignore
            time=state.time + 1,
            position=position,
            explored=bitboard.add(state.explored, y, bitboard.bit(x)),
        )
        return self.view(state, action), state, reward, self.is_terminated(state, params), {}

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether every cell has been visited."""
        return jnp.all(state.open == state.explored)

    def _marked(self, cells: Int32[Array, " cells"], state: EnvState) -> Int32[Array, " cells"]:
        visited = bitboard.cells(state.explored, self.size + 1)
        return jnp.where(visited == 1, START, cells)
