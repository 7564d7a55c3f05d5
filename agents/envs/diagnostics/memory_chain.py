"""The memory chain: bits at the start, and a question about one of them many steps later."""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
from annotated_types import Interval
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from zoo.annotations import Count, checked

from ..core.base import BaseEnvironment
from ..core.hidden import Hides
from ..core.one_end import OneEnd

_MOST_BITS = 10


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of the memory chain; batched states have leading axes.

    `time`: steps taken. `context`: the bits as one number. `asked`: the bit that is asked for. All
    are int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    context: Any
    asked: Any


class MemoryChain(OneEnd[Any, EnvParams], Hides, BaseEnvironment):
    r"""See some bits at once, then blanks, and `length` steps later name the one that is asked for.

    The first observation is the bits as one number, from 0 to \( 2^b - 1 \), bit i being its binary
    digit i; the next `length - 1` are the blank, \( 2^b \); the last is \( 2^b + 1 + i \) and asks
    for bit i, uniformly drawn. The action there ends the episode, with a reward of 1 for the bit
    and -1 for the other value; actions before it count for nothing. An episode has `length + 1`
    steps. The best return is 1. Without memory it is 0 in expectation, because the bits are
    uniform.

    Source: Osband et al., "Behaviour Suite for Reinforcement Learning", ICLR 2020, where an
    observation is a vector with the time left; here the time is not shown.
    """

    best_return = 1.0
    memoryless_return = 0.0

    @checked
    def __init__(self, length: Count = 10, bits: Annotated[int, Interval(ge=1, le=_MOST_BITS)] = 1):
        """**Arguments:**

        - `length`: steps from the bits to the question; at least 1.
        - `bits`: how many there are, b; from 1 to 10.

        **Raises:**

        `TypeError` or `ValueError` for other values.
        """
        self.length = length
        self.bits = bits
        self.blank = 2**self.bits
        super().__init__(
            observations=spaces.Discrete(self.blank + 1 + self.bits),
            actions=spaces.Discrete(2),
            limit=self.length + 1,
        )

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether the question was answered."""
        return state.time > self.length

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Int32[Array, ""], EnvState]:
        """Draw the bits, and which of them will be asked for."""
        key_context, key_asked = jax.random.split(key)
        context = jax.random.randint(key_context, (), 0, self.blank, jnp.int32)
        asked = jax.random.randint(key_asked, (), 0, self.bits, jnp.int32)
        state = EnvState(time=jnp.int32(0), context=context, asked=asked)
        return self._observe(state), state

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Wait, or answer."""
        right = action == (state.context >> state.asked) % 2
        answer = jnp.where(right, jnp.float32(1), jnp.float32(-1))
        reward = jnp.where(state.time == self.length, answer, jnp.float32(0))
        after = EnvState(time=state.time + 1, context=state.context, asked=state.asked)
        return self._observe(after), after, reward, self.is_terminated(after, params), {}

    def _observe(self, state: EnvState) -> Int32[Array, ""]:
        shown = jnp.where(state.time == 0, state.context, jnp.int32(self.blank))
        return jnp.where(state.time == self.length, self.blank + 1 + state.asked, shown)

    @property
    def hidden_space(self) -> spaces.Discrete:
        """The bits as one number."""
        return spaces.Discrete(self.blank)

    def hidden(self, state: EnvState) -> Int32[Array, ""]:
        """Tell the bits."""
        return state.context
