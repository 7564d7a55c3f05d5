"""The T-maze: a sign at the start of a corridor tells where to turn at its end."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from zoo.annotations import Count, checked

from ..core.base import BaseEnvironment
from ..core.hidden import Hides
from ..core.one_end import OneEnd

GOAL_REWARD = 4.0
PENALTY = -0.1
NORTH, EAST, SOUTH, WEST = range(4)
SIGN_NORTH, SIGN_SOUTH, CORRIDOR, JUNCTION = range(4)


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of the T-maze; batched states have leading axes.

    `time`: steps taken, int32. `position`: steps east of the start, int32. `goal_north`: whether
    the goal is north of the junction, and `turned`: whether the agent has turned there, Boolean.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    position: Any
    goal_north: Any
    turned: Any


class TMaze(OneEnd[Any, EnvParams], Hides, BaseEnvironment):
    """Walk along a corridor and turn north or south at its end, as a sign at the start said.

    The start is at the west end, the junction `length` steps east of it. Actions are north, east,
    south and west, 0 to 3. An observation is 0 or 1 at the start, for a goal in the north or south,
    2 in the corridor and 3 at the junction. Turning at the junction ends the episode, with a reward
    of 4 for the goal's side and -0.1 for the other. A step into a wall changes nothing and gives
    -0.1; all others give 0. The best return is 4, in `length + 1` steps; the best without memory
    is 1.95 in expectation. The time limit is ten times the steps of the best episode.

    Source: Bakker, "Reinforcement Learning with Long Short-Term Memory", NeurIPS 2001, where an
    observation is three bits; here it is one of four numbers.
    """

    best_return = GOAL_REWARD
    memoryless_return = (GOAL_REWARD + PENALTY) / 2

    @checked
    def __init__(self, length: Count = 10):
        """**Arguments:**

        - `length`: steps from the start to the junction; at least 1.
        """
        self.length = length
        super().__init__(
            observations=spaces.Discrete(4),
            actions=spaces.Discrete(4),
            limit=10 * (self.length + 1),
        )

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether the agent has turned at the junction."""
        return state.turned

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Int32[Array, ""], EnvState]:
        """Place the goal and go to the start."""
        state = EnvState(
            time=jnp.int32(0),
            position=jnp.int32(0),
            goal_north=(jax.random.bits(key, dtype=jnp.uint32) & 1) == 1,
            turned=jnp.bool_(False),
        )
        return self._observation(state), state

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Go in a direction."""
        north, south = jnp.asarray(action) == NORTH, jnp.asarray(action) == SOUTH
        turned = (state.position == self.length) & (north | south)
        east = (jnp.asarray(action) == EAST).astype(jnp.int32)
        west = (jnp.asarray(action) == WEST).astype(jnp.int32)
        position = jnp.clip(state.position + east - west, 0, self.length)
        at_goal = turned & (north == state.goal_north)
        fails = ~at_goal & (position == state.position)  # into a wall, or the wrong way
        reward = jnp.where(fails, jnp.float32(PENALTY), jnp.float32(0))
        reward = jnp.where(at_goal, jnp.float32(GOAL_REWARD), reward)
        state = EnvState(
            time=state.time + 1, position=position, goal_north=state.goal_north, turned=turned
        )
        return self._observation(state), state, reward, turned, {}

    def _observation(self, state: EnvState) -> Int32[Array, ""]:
        sign = jnp.where(state.goal_north, jnp.int32(SIGN_NORTH), jnp.int32(SIGN_SOUTH))
        seen = jnp.where(state.position == 0, sign, jnp.int32(CORRIDOR))
        return jnp.where(state.position == self.length, jnp.int32(JUNCTION), seen)

    @property
    def hidden_space(self) -> spaces.Discrete:
        """South or north."""
        return spaces.Discrete(2)

    def hidden(self, state: EnvState) -> Int32[Array, ""]:
        """Tell whether the goal is north."""
        return state.goal_north.astype(jnp.int32)
