"""HallwayKeys: fetch two keys, one at a time, for the two doors before the goal."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from ..core.spaces import MultiDiscrete
from .hallway import CORNERS, LAYOUT, START, Hallway, at

DOORS = ((8, 9), (8, 11))
GOAL = (6, 13)


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of HallwayKeys; batched states have leading axes.

    `time`: steps taken, int32. `row`, `column`: where the agent is, int32. `keys`: at which of
    `hallway.CORNERS` a key lies, Boolean, shape `(4,)`. `carries`: whether the agent has a key,
    Boolean. `locked`: which of `DOORS` are locked, Boolean, shape `(2,)`.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    row: Any
    column: Any
    keys: Any
    carries: Any
    locked: Any


class HallwayKeys(Hallway):
    """Bring two keys, one at a time, to two doors in the east room, then enter the goal.

    Keys lie both in the north room, both in the south room, or one in each, the three equally
    likely; a single key of a room is at either of its two places, equally likely. Entering a key's
    cell picks it up unless the agent has one already. Entering a locked door's cell, (8, 9) or
    (8, 11), takes a key and uses it up; without one it is a wall. Entering the goal, (6, 13), gives
    1; all else gives 0. The agent is then back at (8, 2), the doors are locked and the keys are
    placed anew, in the same episode. Whether the agent has a key is not seen. The planes are agent,
    seen cells, keys, locked doors, goal; `Hallway` has what it shares with `HallwayCookie`.

    Source: Toro Icarte et al., "The Act of Remembering: a Study in Partially Observable
    Reinforcement Learning", 2020; there and here after Toro Icarte et al., "Learning Reward
    Machines for Partially Observable Reinforcement Learning", NeurIPS 2019.
    """

    objects = ("keys", "locked doors", "goal")

    def __init__(self, slip: float = 0.05, layout: Sequence[str] = LAYOUT):
        """**Arguments:**

        - `slip`: the probability that a move goes in one of the other three directions.
        - `layout`: 17 rows of 15 characters: `#` a wall, a digit the room that the cell belongs to.
        """
        super().__init__(slip, layout, (START, GOAL, *DOORS, *CORNERS))

    def reset_env(
        self, key: PRNGKeyArray, params: EnvParams
    ) -> tuple[Float32[Array, "5 17 15"], EnvState]:
        """Begin in the hallway, doors locked, keys placed."""
        row, column = map(jnp.int32, START)
        state = EnvState(
            time=jnp.int32(0),
            row=row,
            column=column,
            keys=_place_keys(key),
            carries=jnp.bool_(False),
            locked=jnp.ones(len(DOORS), bool),
        )
        return self._observe(state), state

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Float32[Array, "5 17 15"], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Move."""
        key_walk, key_anew = jax.random.split(key)
        row, column = self.walk(key_walk, state, action)
        lock = state.locked & _is_at(DOORS, row, column)
        blocked = lock.any() & ~state.carries
        row, column = jnp.where(blocked, state.row, row), jnp.where(blocked, state.column, column)
        opened = lock & state.carries
        carries = state.carries & ~lock.any()
        found = state.keys & _is_at(CORNERS, row, column) & ~carries
        moved = EnvState(
            time=state.time + 1,
            row=row,
            column=column,
            keys=state.keys & ~found,
            carries=carries | found.any(),
            locked=state.locked & ~opened,
        )
        reached = (row == GOAL[0]) & (column == GOAL[1])
        _, anew = self.reset_env(key_anew, params)
        anew = anew.replace(time=moved.time)  # pyright: ignore[reportAttributeAccessIssue]
        state = jax.tree.map(lambda new, old: jnp.where(reached, new, old), anew, moved)
        terminated = self.is_terminated(state, params)
        return self._observe(state), state, reached.astype(jnp.float32), terminated, {}

    def _observe(self, state: EnvState) -> Float32[Array, "5 17 15"]:
        keys = at(*CORNERS, present=state.keys)
        return self.look(state, keys, at(*DOORS, present=state.locked), at(GOAL))

    @property
    def hidden_space(self) -> MultiDiscrete:
        """Whether there is a key at each place, whether one is carried, which doors are locked."""
        return MultiDiscrete((2,) * (len(CORNERS) + 1 + len(DOORS)))

    def hidden(self, state: EnvState) -> Int32[Array, "7"]:
        """Tell where the keys are, whether the agent has one, and which doors are locked."""
        return jnp.hstack([state.keys, state.carries, state.locked]).astype(jnp.int32)


def _is_at(
    places: Sequence[tuple[int, int]], row: Int[Array, ""], column: Int[Array, ""]
) -> Bool[Array, " places"]:
    """Which of the places the agent is at."""
    rows, columns = jnp.asarray(places, jnp.int32).T
    return (rows == row) & (columns == column)


def _place_keys(key: PRNGKeyArray) -> Bool[Array, "4"]:
    """At which corners the keys lie."""
    key_rooms, key_north, key_south = jax.random.split(key, 3)
    both_north, both_south, _ = jax.random.randint(key_rooms, (), 0, 3, jnp.int32) == jnp.arange(3)
    # Of 32 bits, as all that is drawn: the same key is the same room with 64-bit types, too.
    half = jnp.float32(0.5)
    west = jnp.stack([jax.random.bernoulli(key, half) for key in (key_north, key_south)])
    single = jnp.stack([west[0], ~west[0], west[1], ~west[1]])
    north = jnp.arange(4) < 2
    return jnp.where(both_north, north, jnp.where(both_south, ~north, single))
