"""The copy task: see some bits, then say them in order."""

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
from ..core.lookup import at
from ..core.one_end import OneEnd

BLANK = 2
"""What is seen after the bits."""


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of the copy task; batched states have leading axes.

    `time`: steps taken. `count`: how many bits the episode has. `bits`: those that were shown,
    shape `(max_bits,)`; a bit that was not shown is 0. All are int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    count: Any
    bits: Any


class CopyTask(OneEnd[Any, EnvParams], Hides, BaseEnvironment):
    r"""See n random bits, one at a step, then n blanks, and name the bits in order at the blanks.

    An observation is 0 or 1 for a bit, 2 for a blank; an action is 0 or 1. n is uniform from 1 to
    `max_bits`, so an episode has from 2 to `2 max_bits` steps, and that it is over with the bits is
    known from the first blank only. An action at a bit counts for nothing. An action at the i-th
    blank gives \( 1/n \) if it is the i-th bit and \( -1/n \) if not, *whichever of the two the bit
    is*: the best return is 1, and any policy that does not depend on the bits, a constant one too,
    has an expected return of 0. Knowing how many of the bits are 1 but not where is worth
    \( 1/n \).

    Source: the task of Irie et al., "Exploring the Promise and Limits of Real-Time Recurrent
    Learning", ICLR 2024, appendix B.1, where it is supervised; the reward is this library's.
    """

    best_return = 1.0
    memoryless_return = 0.0

    @checked
    def __init__(self, max_bits: Count = 10):
        """**Arguments:**

        - `max_bits`: the most bits of an episode, ℓ; at least 1.
        """
        self.max_bits = max_bits
        super().__init__(
            observations=spaces.Discrete(3), actions=spaces.Discrete(2), limit=2 * self.max_bits
        )

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether every bit was asked for."""
        return state.time >= 2 * state.count

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Int32[Array, ""], EnvState]:
        """Draw the number of bits and show the first one."""
        key_count, key_bit = jax.random.split(key)
        count = jax.random.randint(key_count, (), 1, self.max_bits + 1, jnp.int32)
        empty = jnp.zeros((self.max_bits,), jnp.int32)
        return self._show(key_bit, EnvState(time=jnp.int32(0), count=count, bits=empty))

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Score the action, then show a bit or a blank."""
        right = action == at(state.time - state.count, state.bits)
        scale = 1 / state.count.astype(jnp.float32)
        reward = jnp.where(right, scale, -scale)
        reward = jnp.where(state.time >= state.count, reward, jnp.float32(0))
        observation, state = self._show(key, state.replace(time=state.time + 1))  # pyright: ignore
        return observation, state, reward, self.is_terminated(state, params), {}

    def _places(self) -> Int32[Array, " bits"]:
        return jnp.arange(self.max_bits, dtype=jnp.int32)

    def _show(self, key: PRNGKeyArray, state: EnvState) -> tuple[Int32[Array, ""], EnvState]:
        """Draw the bit of this step, if it is one of a bit."""
        bit = (jax.random.bits(key, dtype=jnp.uint32) & 1).astype(jnp.int32)
        shows_bit = state.time < state.count
        here = (self._places() == state.time) & shows_bit
        state = state.replace(bits=jnp.where(here, bit, state.bits))  # pyright: ignore
        return jnp.where(shows_bit, bit, jnp.int32(BLANK)), state

    @property
    def hidden_space(self) -> spaces.Discrete:
        """A bit."""
        return spaces.Discrete(2)

    def hidden(self, state: EnvState) -> Int32[Array, ""]:
        """Tell the bit to name; 0 while they are seen."""
        return at(state.time - state.count, state.bits)
