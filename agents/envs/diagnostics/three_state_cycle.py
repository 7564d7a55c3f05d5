"""A cycle of three states of which one only can be told apart: name the present one."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from zoo.annotations import Count, Share, checked

from ..core.base import BaseEnvironment
from ..core.hidden import Hides

STATES = 3


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of the cycle; batched states have leading axes.

    `time`: steps taken. `place`: 0, 1 or 2, where in the cycle the chain is. Both are int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    place: Any


class ThreeStateCycle(Hides, BaseEnvironment):
    r"""Name the present state of a chain 0 → 1 → 2 → 0, seeing only whether it is state 0.

    Each step the chain advances with probability `advance` and else stays. It begins in any of the
    three states. An observation is 1 in state 0 and 0 in the others. An action is the name of the
    state that was seen last; it gives \( 1/T \) if right and \( -1/T \) if not, with the episode's
    length \( T \), which truncates it. A memory has to count the steps since state 0 was seen.
    Random actions have an expected return of -1/3. Without memory the best is \( 1/3 \) in
    expectation, with it 0.93 by default, and almost 1 where `advance` is 1: only a start in state 1
    or 2 is uncertain.
    """

    @checked
    def __init__(self, max_episode_length: Count = 100, advance: Share = 0.9):
        """**Arguments:**

        - `max_episode_length`: steps of an episode, T; at least 1. It is the default time limit and
            scales the reward.
        - `advance`: probability that the chain moves on in a step; from 0 to 1.
        """
        self.max_episode_length = max_episode_length
        self.advance = advance
        super().__init__(
            observations=spaces.Discrete(2),
            actions=spaces.Discrete(STATES),
            limit=self.max_episode_length,
        )

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Answer no: only the time limit ends an episode."""
        return jnp.bool_(False)

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Int32[Array, ""], EnvState]:
        """Begin in any of the states."""
        place = jax.random.randint(key, (), 0, STATES, jnp.int32)
        return _seen(place), EnvState(time=jnp.int32(0), place=place)

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Score the action, then move on or stay."""
        scale = jnp.float32(1 / self.max_episode_length)
        reward = jnp.where(action == state.place, scale, -scale)
        moves = jax.random.uniform(key, (), jnp.float32) < self.advance
        place = (state.place + moves.astype(jnp.int32)) % STATES
        state = EnvState(time=state.time + 1, place=place)
        return _seen(place), state, reward, self.is_terminated(state, params), {}

    @property
    def hidden_space(self) -> spaces.Discrete:
        """The states."""
        return spaces.Discrete(STATES)

    def hidden(self, state: EnvState) -> Int32[Array, ""]:
        """Tell which of the states the chain is in."""
        return state.place


def _seen(place: Int32[Array, ""]) -> Int32[Array, ""]:
    return (place == 0).astype(jnp.int32)
