"""RedBlueDoors: open the red door, then the blue one."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from ..core.spaces import MultiDiscrete
from .minigrid import (
    BLUE_CLOSED,
    BLUE_OPEN,
    RED_CLOSED,
    RED_OPEN,
    TOGGLE,
    WALL,
    MiniGrid,
    put,
    walls,
)


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of RedBlueDoors; batched states have leading axes.

    `time`: steps taken. `x`, `y`, `direction`: where the agent is and looks. `red_y`, `blue_y`: the
    rows of the doors. These are int32. `red_open`, `blue_open`: whether they are open, Boolean.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    x: Any
    y: Any
    direction: Any
    red_y: Any
    blue_y: Any
    red_open: Any
    blue_open: Any


class RedBlueDoors(MiniGrid):
    r"""A room has a red door on the left and a blue one on the right: open red, then blue.

    The map is 2 size wide and size high; the room is the square in its middle. The agent begins
    anywhere in it, in any direction. Opening the blue door while the red one is open gives
    \( 1 - 0.9\, t / T \) after t of at most \( T = 20\,\mathrm{size}^2 \) steps, opening it
    while the red one is closed 0, and both terminate. The same, step by step, as `RedBlueDoorEnv`
    of the Python package `minigrid` 3.2, with its image as the observation: see `MiniGrid`.
    `terminated` and `truncated` can be true together, as there.

    Source: Chevalier-Boisvert et al., "Minigrid & Miniworld: Modular & Customizable Reinforcement
    Learning Environments for Goal-Oriented Tasks", NeurIPS 2023.
    """

    def __init__(self, size: int = 8, view: int = 3):
        """**Arguments:**

        - `size`: side of the room with its walls; even and at least 4.
        - `view`: side of the square that is seen; odd, 3 to 31.
        """
        super().__init__(size, view, steps_per_cell=20)
        if self.size < 4 or self.size % 2:
            raise ValueError(f"`size` (={size}) must be even and at least 4.")
        self._red_x = self.size // 2
        self._blue_x = self._red_x + self.size - 1
        tiles = walls(2 * self.size, self.size)
        tiles[:, [self._red_x, self._blue_x]] = WALL
        self._tiles = tiles

    def reset_env(
        self, key: PRNGKeyArray, params: EnvParams
    ) -> tuple[Int32[Array, " numbers"], EnvState]:
        """Draw the places of doors and agent."""
        key_x, key_rows, key_direction = jax.random.split(key, 3)
        y, red_y, blue_y = jax.random.randint(key_rows, (3,), 1, self.size - 1, jnp.int32)
        state = EnvState(
            time=jnp.int32(0),
            x=jax.random.randint(key_x, (), self._red_x + 1, self._blue_x, jnp.int32),
            y=y,
            direction=jax.random.randint(key_direction, (), 0, 4, jnp.int32),
            red_y=red_y,
            blue_y=blue_y,
            red_open=jnp.bool_(False),
            blue_open=jnp.bool_(False),
        )
        return self.look(self.map(state), state), state

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Int32[Array, " numbers"], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Act."""
        after, x, y = self.moved(self.map(state), state, action)
        toggles = jnp.asarray(action, jnp.int32) == TOGGLE
        red = toggles & (x == self._red_x) & (y == state.red_y)
        blue = toggles & (x == self._blue_x) & (y == state.blue_y)
        red_was_open = state.red_open
        state = after.replace(red_open=state.red_open ^ red, blue_open=state.blue_open ^ blue)
        ended = self.is_terminated(state, params)
        used = state.time / jnp.float32(params.max_steps_in_episode)
        reward = jnp.where(ended & red_was_open, 1 - jnp.float32(0.9) * used, jnp.float32(0))
        return self.look(self.map(state), state), state, reward, ended, {}

    def map(self, state: EnvState) -> Int32[Array, "height width"]:
        """Draw the map of a state."""
        red = jnp.where(state.red_open, RED_OPEN, RED_CLOSED)
        blue = jnp.where(state.blue_open, BLUE_OPEN, BLUE_CLOSED)
        tiles = put(jnp.asarray(self._tiles), self._red_x, state.red_y, red)
        return put(tiles, self._blue_x, state.blue_y, blue)

    def is_terminated(self, state: Any, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether the blue door is open."""
        return state.blue_open

    @property
    def hidden_space(self) -> MultiDiscrete:
        """The agent's x, y and direction; the doors' rows, and whether they are open."""
        return MultiDiscrete((2 * self.size, self.size, 4, self.size, self.size, 2, 2))

    def hidden(self, state: EnvState) -> Int32[Array, "7"]:
        """Tell where the agent is and looks, where the doors are and whether they are open."""
        doors = [state.red_y, state.blue_y, state.red_open, state.blue_open]
        return jnp.stack([state.x, state.y, state.direction, *(d.astype(jnp.int32) for d in doors)])
