"""LabyrinthEscape: find the way out of a maze."""

from typing import Any

import jax.numpy as jnp
from flax import struct
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from . import bitboard
from .labyrinth import GOAL, NO_ACTION, Labyrinth


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of LabyrinthEscape; batched states have leading axes.

    `time`: steps taken. `open`: the cells that are not wall, uint32 of shape `(size + 1,)`: bit x
    of word y is the cell in row y and column x. `position`, `start`, `goal`: row and column of
    the agent, of where it began and of the way out, shape `(2,)`. All but `open` are int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    open: Any
    position: Any
    start: Any
    goal: Any


class LabyrinthEscape(Labyrinth):
    r"""Walk from an opening in the outer wall of a maze to the one in the opposite wall.

    Every step gives -1 / `episode_length`, and the one that reaches the goal 1 more and terminates
    the episode; it is truncated after `episode_length` - 1 steps (both, if the last step reaches
    the goal). The best return is \( 1 - d / 1024 \) for a goal d steps away. The same, step by
    step, as `LabyrinthEscape` of the Python package `popgym` 1.0.7 in the same maze; mazes have
    the same distribution. Those are made in a limited number of attempts, so that in fewer than one
    of 10,000 a room stays closed, and the goal may be out of reach. POPGym's authors have found
    that memory is not needed here.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023.
    """

    def reset_env(
        self, key: PRNGKeyArray, params: EnvParams
    ) -> tuple[Int32[Array, "10"], EnvState]:
        """Enter a new maze."""
        maze = self.maze(key)
        y, x = maze.end
        state = EnvState(
            time=jnp.int32(0),
            open=bitboard.add(maze.open, y, bitboard.bit(x)),
            position=maze.start,
            start=maze.start,
            goal=maze.end,
        )
        return self.view(state, NO_ACTION, state.goal), state

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Int32[Array, "10"], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Move."""
        position = self.moved(state.open, state.position, action)
        state = state.replace(time=state.time + 1, position=position)  # pyright: ignore
        terminated = self.is_terminated(state, params)
        cost = -1 / self.episode_length
        reward = jnp.where(terminated, jnp.float32(1 + cost), jnp.float32(cost))
        return self.view(state, action, state.goal), state, reward, terminated, {}

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether the agent is at the goal."""
        return jnp.all(state.position == state.goal)

    def _marked(self, cells: Int32[Array, " cells"], state: EnvState) -> Int32[Array, " cells"]:
        y, x = state.goal
        return cells.at[y * (self.size + 1) + x].set(GOAL)
