"""MiniGridMemory: go to the object that was shown at the start."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from ..core.spaces import MultiDiscrete
from .minigrid import BALL, EMPTY, KEY, WALL, MiniGrid, put, walls


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of MiniGridMemory; batched states have leading axes.

    `time`: steps taken. `x`, `y`, `direction`: where the agent is and looks. `shown`: the tile in
    the first room. `upper`: the tile at the upper end; the other one is at the lower end. All are
    int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    x: Any
    y: Any
    direction: Any
    shown: Any
    upper: Any


class MiniGridMemory(MiniGrid):
    r"""A key or a ball is in the first room; at the fork go to the end where the same one is.

    The agent begins at a random place of the middle row and looks right; the fork is the last
    column. Reaching the cell before the matching object gives \( 1 - 0.9\, t / T \) after t of at
    most \( T = 5\,\mathrm{size}^2 \) steps, reaching the other one 0, and both terminate. The same,
    step by step, as `MemoryEnv` of the Python package `minigrid` 3.2 without random length, with
    its image as the observation: see `MiniGrid`. `terminated` and `truncated` can be true together,
    as there.

    Source: Chevalier-Boisvert et al., "Minigrid & Miniworld: Modular & Customizable Reinforcement
    Learning Environments for Goal-Oriented Tasks", NeurIPS 2023.
    """

    def __init__(self, size: int = 7, view: int = 3):
        """**Arguments:**

        - `size`: side of the map; odd and at least 7.
        - `view`: side of the square that is seen; odd, 3 to 31.
        """
        super().__init__(size, view, steps_per_cell=5)
        if self.size < 7 or self.size % 2 == 0:
            raise ValueError(f"`size` (={size}) must be odd and at least 7.")
        self._middle = self.size // 2
        self._fork = self.size - 2
        tiles = walls(self.size, self.size)
        tiles[[self._middle - 2, self._middle + 2], 1:5] = WALL
        tiles[[self._middle - 1, self._middle + 1], 4 : self._fork - 1] = WALL
        tiles[:, self._fork - 1] = WALL
        tiles[self._middle, self._fork - 1] = EMPTY
        self._tiles = tiles

    def reset_env(
        self, key: PRNGKeyArray, params: EnvParams
    ) -> tuple[Int32[Array, " numbers"], EnvState]:
        """Draw the objects and the agent's place."""
        key_place, key_objects = jax.random.split(key)
        # The same with 64-bit types: of 32 bits.
        heads = jax.random.bernoulli(key_objects, jnp.float32(0.5), (2,))
        shown, upper = jnp.where(heads, BALL, KEY)
        state = EnvState(
            time=jnp.int32(0),
            x=jax.random.randint(key_place, (), 1, self._fork, jnp.int32),
            y=jnp.int32(self._middle),
            direction=jnp.int32(0),
            shown=shown.astype(jnp.int32),
            upper=upper.astype(jnp.int32),
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
        tiles = self.map(state)
        state, _, _ = self.moved(tiles, state, action)
        right = jnp.where(state.shown == state.upper, self._middle - 1, self._middle + 1)
        ended = self.is_terminated(state, params)
        used = state.time / jnp.float32(params.max_steps_in_episode)
        reward = jnp.where(ended & (state.y == right), 1 - jnp.float32(0.9) * used, jnp.float32(0))
        return self.look(tiles, state), state, reward, ended, {}

    def map(self, state: EnvState) -> Int32[Array, "height width"]:
        """Draw the map of a state."""
        tiles = put(jnp.asarray(self._tiles), 1, self._middle - 1, state.shown)
        tiles = put(tiles, self._fork, self._middle - 2, state.upper)
        return put(tiles, self._fork, self._middle + 2, KEY + BALL - state.upper)

    def is_terminated(self, state: Any, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether the agent is before one of the two objects."""
        return (state.x == self._fork) & (jnp.abs(state.y - self._middle) == 1)

    @property
    def hidden_space(self) -> MultiDiscrete:
        """The agent's x, y and direction; which object is shown, and which is above."""
        return MultiDiscrete((self.size, self.size, 4, 2, 2))

    def hidden(self, state: EnvState) -> Int32[Array, "5"]:
        """Tell where the agent is and looks, and where which object is: 1 for a ball."""
        balls = [(tile == BALL).astype(jnp.int32) for tile in (state.shown, state.upper)]
        return jnp.stack([state.x, state.y, state.direction, *balls])
