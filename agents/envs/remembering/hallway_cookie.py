"""HallwayCookie: press the button, then find the cookie in one of two rooms."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from .hallway import CORNERS, LAYOUT, START, Hallway, at

BUTTON = (8, 13)


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of HallwayCookie; batched states have leading axes.

    `time`: steps taken. `row`, `column`: where the agent is. `cookie`: its place, an index into
    `hallway.CORNERS`, or -1 if there is none. All are int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    row: Any
    column: Any
    cookie: Any


class HallwayCookie(Hallway):
    """Press a button in the east room; a cookie appears in the north or the south room; eat it.

    Entering the button's cell, (8, 13), puts a cookie at one of (1, 1), (1, 3), (15, 1) and
    (15, 3), each as likely, and removes the old one. Entering the cookie's cell eats it and gives
    1; all else gives 0. There is no cookie at the beginning. One must remember whether the button
    is pressed, and which room was found empty. The planes are agent, seen cells, button, cookie;
    `Hallway` has what it shares with `HallwayKeys`.

    Source: Toro Icarte et al., "The Act of Remembering: a Study in Partially Observable
    Reinforcement Learning", 2020; there and here after Toro Icarte et al., "Learning Reward
    Machines for Partially Observable Reinforcement Learning", NeurIPS 2019.
    """

    objects = ("button", "cookie")

    def __init__(self, slip: float = 0.05, layout: Sequence[str] = LAYOUT):
        """**Arguments:**

        - `slip`: the probability that a move goes in one of the other three directions.
        - `layout`: 17 rows of 15 characters: `#` a wall, a digit the room that the cell belongs to.
        """
        super().__init__(slip, layout, (START, BUTTON, *CORNERS))

    def reset_env(
        self, key: PRNGKeyArray, params: EnvParams
    ) -> tuple[Float32[Array, "4 17 15"], EnvState]:
        """Begin in the hallway without a cookie."""
        row, column = map(jnp.int32, START)
        state = EnvState(time=jnp.int32(0), row=row, column=column, cookie=jnp.int32(-1))
        return self._observe(state), state

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Float32[Array, "4 17 15"], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Move."""
        key_walk, key_cookie = jax.random.split(key)
        row, column = self.walk(key_walk, state, action)
        moved = (row != state.row) | (column != state.column)
        pressed = moved & (row == BUTTON[0]) & (column == BUTTON[1])
        places = jnp.asarray(CORNERS, jnp.int32)[state.cookie]
        eaten = (state.cookie >= 0) & (row == places[0]) & (column == places[1])
        placed = jax.random.randint(key_cookie, (), 0, len(CORNERS), jnp.int32)
        cookie = jnp.where(pressed, placed, jnp.where(eaten, -1, state.cookie))
        state = EnvState(time=state.time + 1, row=row, column=column, cookie=cookie)
        terminated = self.is_terminated(state, params)
        return self._observe(state), state, eaten.astype(jnp.float32), terminated, {}

    def _observe(self, state: EnvState) -> Float32[Array, "4 17 15"]:
        present = state.cookie == jnp.arange(len(CORNERS), dtype=jnp.int32)
        return self.look(state, at(BUTTON), at(*CORNERS, present=present))

    @property
    def hidden_space(self) -> spaces.Discrete:
        """No cookie, or its place."""
        return spaces.Discrete(1 + len(CORNERS))

    def hidden(self, state: EnvState) -> Int32[Array, ""]:
        """Tell where the cookie is: 0 if there is none, or one more than its place."""
        return state.cookie + 1
