"""Games in which only the sequence of actions counts: recall and its variations."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from ..core.arrays import as_array
from ..core.base import BaseEnvironment
from ..core.hidden import Hides
from ..core.one_end import OneEnd
from ..core.spaces import MultiDiscrete

RECALL = tuple(
    tuple(tuple(float((i, j, k) == (0, 1, 2)) for k in range(3)) for j in range(3))
    for i in range(3)
)
"""Actions 0, 1, 2 in this order give 1, anything else 0."""

RECALL_VARIATION = (((0.0, 2.0), (3.0, 1.0)), ((-100.0, -100.0), (-10.0, -10.0)))
"""Rewards of the eight sequences of three actions, the first action first."""

RECALL_FOUR = (
    (-5.0, 0.5, 1.0, 0.5),
    (0.0, 0.5, -0.5, 0.75),
    (0.0, 0.5, -5.0, 0.5),
    (0.0, 0.5, -5.0, 0.5),
)
"""Rewards of two actions: rows are the first one, columns the second."""


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of an action sequence game; batched states have leading axes.

    `time`: steps taken. `prefix`: the actions so far as the digits of one number, the first action
    the most significant. Both are int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    prefix: Any


class ActionSequence(OneEnd[Any, EnvParams], Hides, BaseEnvironment):
    """Take a fixed number of actions without seeing anything; their sequence has a reward.

    The only observation is 0. The last step gives the reward that a table has for the whole
    sequence and terminates; the steps before give 0. Without a memory the policy is one
    distribution over actions for all steps.

    Source: Toro Icarte et al., "The Act of Remembering: a Study in Partially Observable
    Reinforcement Learning", 2020.
    """

    def __init__(self, rewards: Any, title: str = "ActionSequence"):
        """**Arguments:**

        - `rewards`: array or nested sequences of shape `(actions,) * steps`; the entry at the
            actions' indices is the reward of their sequence.
        - `title`: the environment's name.

        **Raises:**

        `TypeError` if `rewards` is no array of numbers; `ValueError` if the axes differ in length,
        there is none, or a reward is not finite.
        """
        numbers = as_array("rewards", rewards, "iuf", "an array of numbers, (actions,) * steps")
        table = numbers.astype(np.float32)
        if table.ndim < 1 or len(set(table.shape)) != 1 or not table.size:
            raise ValueError(f"`rewards` (of shape {table.shape}) must have axes of equal length.")
        if not np.isfinite(table).all():
            raise ValueError(f"`rewards` (={rewards!r}) must be finite numbers.")
        self.rewards = table
        self._title = title
        super().__init__(
            observations=spaces.Discrete(1),
            actions=spaces.Discrete(table.shape[0]),
            limit=table.ndim,
        )

    @property
    def name(self) -> str:
        """The game's title."""
        return self._title

    @property
    def steps(self) -> int:
        """Actions in a sequence."""
        return self.rewards.ndim

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Int32[Array, ""], EnvState]:
        """Begin a sequence."""
        return jnp.int32(0), EnvState(time=jnp.int32(0), prefix=jnp.int32(0))

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Append an action."""
        prefix = state.prefix * self.num_actions + jnp.asarray(action, jnp.int32)
        state = EnvState(time=state.time + 1, prefix=prefix)
        complete = self.is_terminated(state, params)
        table = jnp.asarray(self.rewards.ravel())
        reward = jnp.where(complete, table[prefix % table.size], jnp.float32(0))
        return jnp.int32(0), state, reward, complete, {}

    def is_terminated(self, state: Any, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether the sequence is complete."""
        return state.time >= self.steps

    @property
    def hidden_space(self) -> MultiDiscrete:
        """For every action but the last: not yet taken, or which."""
        return MultiDiscrete((self.num_actions + 1,) * max(self.steps - 1, 1))

    def hidden(self, state: EnvState) -> Int32[Array, " earlier"]:
        """Tell the actions so far: 0 for one to come, else one more than the action."""
        number = jnp.arange(max(self.steps - 1, 1), dtype=jnp.int32)
        after = jnp.maximum(state.time - 1 - number, 0)
        digits = state.prefix // self.num_actions**after % self.num_actions
        return jnp.where(number < state.time, digits + 1, 0)
