"""Sarsa(λ) and Q(λ) with a table, for environments small enough to have one."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from gymnax.environments import spaces
from jaxtyping import Array, Float, Int, PRNGKeyArray

from agents.envs import MultiDiscrete

MOST_ENTRIES = 10_000_000
"""The largest table that `train_table` makes, in numbers."""


class TableResult(NamedTuple):
    """What `train_table` returns.

    - `table`: the action values, `[observations, actions]`.
    - `returns`: mean return of the episodes that ended in each part of the training, `[points]`;
        NaN where none did.
    - `lengths`: mean length of the same episodes, in steps.
    """

    table: Float[Array, "observations actions"]
    returns: Float[Array, " points"]
    lengths: Float[Array, " points"]


def table_index(space: Any, observation: Any) -> Int[Array, ""]:
    """The row of an observation in a table.

    **Arguments:**

    - `space`: a `Discrete` or `MultiDiscrete` space.
    - `observation`: one element of it.

    **Returns:**

    An integer from 0 to `table_rows(space) - 1`: the observation itself, or the number whose digits
    are the observation's numbers, the first the most significant.

    **Raises:**

    `TypeError` for another kind of space.
    """
    table_rows(space)
    if isinstance(space, spaces.Discrete):
        return jnp.asarray(observation, jnp.int32)
    index = jnp.int32(0)
    for number, count in enumerate(space.nvec):
        index = index * count + jnp.asarray(observation[number], jnp.int32)
    return index


def table_rows(space: Any) -> int:
    """How many observations a space has.

    **Arguments:**

    - `space`: a `Discrete` or `MultiDiscrete` space.

    **Returns:**

    Their number.

    **Raises:**

    `TypeError` for another kind of space.
    """
    if isinstance(space, spaces.Discrete):
        return space.n
    if isinstance(space, MultiDiscrete):
        return math.prod(space.nvec)
    raise TypeError(f"`space` (={space!r}) must be Discrete or MultiDiscrete.")


def train_table(
    env: Any,
    params: Any,
    *,
    steps: int,
    points: int = 100,
    algorithm: str = "sarsa",
    learning_rate: float = 0.1,
    discount: float = 0.95,
    trace_decay: float = 0.0,
    epsilon: float = 0.1,
    initial_value: float = 0.0,
    key: PRNGKeyArray,
) -> TableResult:
    r"""Learn action values by temporal differences, acting ε-greedily on them.

    At each step, with the error
    \( \delta = r + \gamma Q(o', a') - Q(o, a) \) (Sarsa; Q-learning has \( \max_a Q(o', a) \) for
    \( Q(o', a') \)), every entry changes by \( \alpha \delta e \). The eligibility \( e \) of the
    present pair becomes 1 (of the observation's other actions 0), and all decay by
    \( \gamma \lambda \) afterwards. Q-learning also cuts them off where an action is not greedy, as
    Watkins does. Only a termination stops bootstrapping. Ties among the best actions are broken at
    random. It is one compiled loop, unbatched: `vmap` over keys trains seeds side by side.

    **Arguments:**

    - `env`: an environment with discrete observations and `Discrete` actions.
    - `params`: its parameters.
    - `steps`: environment steps; a multiple of `points`.
    - `points`: in how many parts the training is reported.
    - `algorithm`: `"sarsa"` or `"q_learning"`.
    - `learning_rate`: α, above 0 and at most 1.
    - `discount`: γ, from 0 to 1.
    - `trace_decay`: λ, from 0 to 1.
    - `epsilon`: the probability of a uniformly drawn action, from 0 to 1.
    - `initial_value`: what every entry of the table begins with.
    - `key`: a PRNG key.

    **Returns:**

    `TableResult`: the table and the learning curve.

    **Raises:**

    - `TypeError`: if the spaces are not discrete.
    - `ValueError`: if a number breaks its rule or the table would be too large.

    Source: Sutton and Barto, "Reinforcement Learning: An Introduction", 2nd edition, chapters 6
    and 12; Watkins, "Learning from Delayed Rewards", 1989; replacing traces: Singh and Sutton,
    "Reinforcement Learning with Replacing Eligibility Traces", 1996.
    """
    space, action_space = env.observation_space(params), env.action_space(params)
    if not isinstance(action_space, spaces.Discrete):
        raise TypeError(f"`env` must have Discrete actions, but they are {action_space!r}.")
    rows, actions = table_rows(space), action_space.n
    if rows * actions > MOST_ENTRIES:
        raise ValueError(
            f"`env` has {rows} observations times {actions} actions, "
            f"which must be at most {MOST_ENTRIES}."
        )
    _check(steps, points, algorithm, learning_rate, discount, trace_decay, epsilon)
    sarsa = algorithm == "sarsa"

    def act(key, table, row):
        """An action, and whether it is one of the best."""
        values = table[row]
        best = values == values.max()
        explores, drawn, tie = jax.random.uniform(key, (3,), jnp.float32)
        greedy = jnp.argmax(jnp.cumsum(best) > jnp.floor(tie * best.sum())).astype(jnp.int32)
        drawn = jnp.floor(drawn * actions).astype(jnp.int32)
        action = jnp.where(explores < epsilon, drawn, greedy)
        return action, best[action]

    def step(carry, key):
        table, trace, env_state, row, (action, greedy), total, length = carry
        key_step, key_act = jax.random.split(key)
        observation, env_state, reward, terminated, truncated, info = env.step(
            key_step, env_state, action, params
        )
        done = terminated | truncated
        # Where the episode goes on, the final observation is the observation.
        final = table_index(space, info["final_observation"])
        following = act(key_act, table, final)
        target = table[final, following[0]] if sarsa else table[final].max()
        error = reward + discount * jnp.where(terminated, 0, target) - table[row, action]
        if not sarsa:
            trace = jnp.where(greedy, trace, 0)
        trace = trace.at[row].set(0).at[row, action].set(1)
        table = table + learning_rate * error * trace
        trace = jnp.where(done, 0, discount * trace_decay * trace)
        row = table_index(space, observation)
        # The same key: where an episode ends, the other action is only bootstrapped from.
        first = act(key_act, table, row)
        chosen = jax.tree.map(lambda new, old: jnp.where(done, new, old), first, following)
        total, length = total + reward, length + 1
        ended = jnp.stack([jnp.where(done, x, 0) for x in (total, length, jnp.float32(1))])
        total, length = jnp.where(done, 0, total), jnp.where(done, 0, length)
        return (table, trace, env_state, row, chosen, total, length), ended

    def part(carry, keys):
        carry, ended = jax.lax.scan(step, carry, keys)
        total, length, count = ended.sum(axis=0)
        return carry, (total / count, length / count)

    key_reset, key_act, key_steps = jax.random.split(key, 3)
    observation, env_state = env.reset(key_reset, params)
    table = jnp.full((rows, actions), initial_value, jnp.float32)
    row = table_index(space, observation)
    zero = jnp.float32(0)
    carry = (table, jnp.zeros_like(table), env_state, row, act(key_act, table, row), zero, zero)
    keys = jax.random.split(key_steps, (points, steps // points))
    carry, (returns, lengths) = jax.lax.scan(part, carry, keys)
    return TableResult(carry[0], returns, lengths)


def _check(steps, points, algorithm, learning_rate, discount, trace_decay, epsilon) -> None:
    """Refuse settings that break their rules."""
    if points < 1 or steps < 1 or steps % points:
        raise ValueError(f"`steps` (={steps}) must be a positive multiple of `points` (={points}).")
    if algorithm not in ("sarsa", "q_learning"):
        raise ValueError(f"`algorithm` (={algorithm!r}) must be 'sarsa' or 'q_learning'.")
    if not 0 < learning_rate <= 1:
        raise ValueError(f"`learning_rate` (={learning_rate}) must be above 0 and at most 1.")
    for name, value in (("discount", discount), ("trace_decay", trace_decay), ("epsilon", epsilon)):
        if not 0 <= value <= 1:
            raise ValueError(f"`{name}` (={value}) must be from 0 to 1.")
