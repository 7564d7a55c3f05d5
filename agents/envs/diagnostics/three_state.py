"""The three-state POMDP: predict the next of three states, which one of them makes certain."""

from typing import Any, Literal

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

STATES = 3
RETURNS = 2
"""The state from which the chain returns to where it came from."""


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of the three-state POMDP; batched states have leading axes.

    `time`: steps taken. `place`: 0, 1 or 2, which is seen. `previous`: the place before it; at the
    beginning the place itself. All are int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    place: Any
    previous: Any


class ThreeState(Hides, BaseEnvironment):
    r"""Predict the next state of a chain, which from one of its three returns to the one before.

    The chain has no actions: from state 0 or 1 the next is any of the three with equal probability,
    and from state 2 it is the one before it, which is 0 or 1. It begins in 0 or 1. The observation
    is the state, and the action is the prediction of the next one. Only in state 2 can it be known,
    and only by an agent that remembers one step.

    A right prediction is rewarded in state 2, where the chain is a quarter of the time, by
    \( 4/T \) with the episode's length \( T \), which truncates it; with `scored="all"` it is
    rewarded everywhere, by \( 1/T \). The return is the share of right predictions, in expectation
    for state 2. There it is 1 with a memory and 1/2 without, over all steps 1/2 and 3/8, but for
    the beginning: state 2 is visited \( (T - 3 (1 - (-1/3)^T) / 4) / 4 \) times in the mean.

    Source: Elelimy et al., "Real-Time Recurrent Learning using Trace Units in Reinforcement
    Learning", NeurIPS 2024, appendix A.3. There it is supervised prediction; the reward and the
    length are this library's.
    """

    @checked
    def __init__(self, max_episode_length: Count = 100, scored: Literal["third", "all"] = "third"):
        """**Arguments:**

        - `max_episode_length`: steps of an episode, T; at least 1. It is the default time limit and
            scales the reward.
        - `scored`: "third", if predictions are rewarded in state 2 only; or "all".
        """
        self.max_episode_length = max_episode_length
        self.scored = scored
        super().__init__(
            observations=spaces.Discrete(STATES),
            actions=spaces.Discrete(STATES),
            limit=self.max_episode_length,
        )

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Answer no: only the time limit ends an episode."""
        return jnp.bool_(False)

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Int32[Array, ""], EnvState]:
        """Begin in state 0 or 1."""
        place = jax.random.randint(key, (), 0, RETURNS, jnp.int32)
        return place, EnvState(time=jnp.int32(0), place=place, previous=place)

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Move, and score the prediction of where to."""
        anywhere = jax.random.randint(key, (), 0, STATES, jnp.int32)
        place = jnp.where(state.place == RETURNS, state.previous, anywhere)
        if self.scored == "all":
            worth = jnp.float32(1 / self.max_episode_length)
        else:
            worth = (state.place == RETURNS) * jnp.float32(4 / self.max_episode_length)
        reward = jnp.where(action == place, worth, jnp.float32(0))
        state = EnvState(time=state.time + 1, place=place, previous=state.place)
        return place, state, reward, self.is_terminated(state, params), {}

    @property
    def hidden_space(self) -> spaces.Discrete:
        """The state before the one that is seen."""
        return spaces.Discrete(STATES)

    def hidden(self, state: EnvState) -> Int32[Array, ""]:
        """Tell the state before the one that is seen: where state 2 returns to."""
        return state.previous
