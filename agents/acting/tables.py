"""Tables in the place of a network: rows for observations, and behaviors that look them up."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from gymnax.environments import spaces
from jaxtyping import Array, Bool, Float, Int

from agents.acting.behavior import AbstractBehavior, Decision
from agents.envs import MultiDiscrete
from agents.mapped import mapped
from agents.networks import Inputs
from agents.networks.spaces import by_content

MOST_ENTRIES = 10_000_000
"""The largest table that is made, in numbers."""


def table_index(space: Any, observation: Any) -> Int[Array, ""]:
    """Return the row of an observation in a table, from 0 to `table_rows(space) - 1`.

    It is the observation itself, or the number whose digits are the observation's numbers, the
    first the most significant.

    **Raises:**

    `TypeError` for a space that is not `Discrete` or `MultiDiscrete`.
    """
    table_rows(space)
    if isinstance(space, spaces.Discrete):
        return jnp.asarray(observation, jnp.int32)
    index = jnp.int32(0)
    for number, count in enumerate(space.nvec):
        index = index * count + jnp.asarray(observation[number], jnp.int32)
    return index


def table_rows(space: Any) -> int:
    """Count the observations of a space.

    **Raises:**

    `TypeError` for a space that is not `Discrete` or `MultiDiscrete`.
    """
    if isinstance(space, spaces.Discrete):
        return space.n
    if isinstance(space, MultiDiscrete):
        return math.prod(space.nvec)
    raise TypeError(
        f"`env` must have Discrete or MultiDiscrete observations, but they are {space!r}."
    )


def table_shape(environment: tuple[Any, Any]) -> tuple[int, int]:
    """Count the observations and the actions of an environment.

    **Raises:**

    `TypeError` if they are not discrete; `ValueError` if a table of them would be too large.
    """
    env, params = environment
    actions = env.action_space(params)
    if not isinstance(actions, spaces.Discrete):
        raise TypeError(f"`env` must have Discrete actions, but they are {actions!r}.")
    rows = table_rows(env.observation_space(params))
    if rows * actions.n > MOST_ENTRIES:
        raise ValueError(
            f"`env` has {rows} observations times {actions.n} actions, "
            f"which must be at most {MOST_ENTRIES}."
        )
    return rows, actions.n


def choose(
    table: Float[Array, "observations actions"], row: Int[Array, ""], epsilon: float, key: Array
) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """Choose an action ε-greedily, and tell whether it is one of the best.

    Ties among the best are broken at random.
    """
    values = table[row]
    best = values == values.max()
    explores, drawn, tie = jax.random.uniform(key, (3,), jnp.float32)
    greedy = jnp.argmax(jnp.cumsum(best) > jnp.floor(tie * best.sum())).astype(jnp.int32)
    drawn = jnp.floor(drawn * values.size).astype(jnp.int32)
    action = jnp.where(explores < epsilon, drawn, greedy)
    return action, best[action]


class ByTable(AbstractBehavior):
    """Takes actions by their values in a table; of drawn ones `epsilon` are uniformly random."""

    table: Float[Array, "observations actions"]
    space: Any = eqx.field(static=True, converter=by_content)
    epsilon: float = eqx.field(static=True)

    def init_state(self) -> tuple[()]:
        return ()

    def __call__(
        self, state: tuple[()], inputs: Inputs, key: Array | None
    ) -> tuple[tuple[()], Decision]:
        """Choose ε-greedily with a key, greedily without."""
        rows = mapped(lambda o: table_index(self.space, o))(inputs.observation)
        if key is None:
            return state, Decision(jnp.argmax(self.table[rows], axis=-1))
        keys = jax.random.split(key, rows.shape[0])
        pick = lambda row, key: choose(self.table, row, self.epsilon, key)[0]  # noqa: E731
        return state, Decision(mapped(pick)(rows, keys))


class Tables(eqx.Module):
    """Preferences, whose softmax is the policy, and values, by observation."""

    preference: Float[Array, "observations actions"]
    value: Float[Array, " observations"]


class ByPreference(AbstractBehavior):
    """Draws actions by the softmax of their preferences, and keeps the row of the observation."""

    tables: Tables
    space: Any = eqx.field(static=True, converter=by_content)

    def init_state(self) -> tuple[()]:
        return ()

    def __call__(
        self, state: tuple[()], inputs: Inputs, key: Array | None
    ) -> tuple[tuple[()], Decision]:
        """Draw with a key; without one, take the most preferred action."""
        rows = self.rows(inputs)
        preference = self.tables.preference[rows]
        if key is None:
            action = jnp.argmax(preference, axis=-1)
        else:
            action = jax.random.categorical(key, preference)
        return state, Decision(action, rows)

    def at_end(self, state: tuple[()], inputs: Inputs) -> Array:
        return self.tables.value[self.rows(inputs)]

    def rows(self, inputs: Inputs) -> Array:
        """Return the tables' rows of what is seen."""
        return mapped(lambda o: table_index(self.space, o))(inputs.observation)
