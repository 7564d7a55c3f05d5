"""The tabular learner: its updates by hand, its fixed point, and what it needs a memory for."""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import Environment, EnvParams

from agents import envs
from agents.envs.remembering.action_sequence import RECALL
from agents.tabular import table_index, table_rows, train_table
from tests.cases import slow_but

ALPHA, GAMMA = 0.3, 0.9


@struct.dataclass
class ChainState:
    time: Any


class Chain(Environment):
    """Cells 0 to 4 from left to right with one action; leaving the last one gives 1."""

    @property
    def default_params(self):
        return EnvParams(max_steps_in_episode=100)

    def observation_space(self, params):
        return spaces.Discrete(6)

    def action_space(self, params):
        return spaces.Discrete(1)

    def reset_env(self, key, params):
        return jnp.int32(0), ChainState(jnp.int32(0))

    def step_env(self, key, state, action, params):
        state = ChainState(state.time + 1)
        ended = state.time >= 5
        return state.time, state, ended.astype(jnp.float32), ended, {}


def chain_by_hand(steps, trace_decay, limit):
    """TD(λ) with replacing traces, as the textbook has it."""
    value, trace, cell = np.zeros(6), np.zeros(6), 0
    for _ in range(steps):
        reward, terminated = float(cell == 4), cell == 4
        truncated = cell + 1 == limit
        following = 0.0 if terminated else value[cell + 1]
        error = reward + GAMMA * following - value[cell]
        trace[cell] = 1
        value += ALPHA * error * trace
        trace *= GAMMA * trace_decay
        cell += 1
        if terminated or truncated:
            cell, trace = 0, np.zeros(6)
    return value


@pytest.mark.parametrize(
    ("algorithm", "trace_decay", "limit"),
    slow_but(
        [("sarsa", 0.8, 3)],
        (
            (algorithm, *rest)
            for algorithm in ("sarsa", "q_learning")
            for rest in ((0.0, 100), (0.8, 100), (0.8, 3), (1.0, 5))
        ),
    ),
)
def test_updates_by_hand(algorithm, trace_decay, limit):
    """A chain with one action: Q is the value; a limit of 3 truncates, and is bootstrapped over."""
    env = Chain()
    result = jax.jit(
        functools.partial(
            train_table,
            env,
            env.default_params.replace(max_steps_in_episode=limit),
            steps=60,
            points=4,
            algorithm=algorithm,
            learning_rate=ALPHA,
            discount=GAMMA,
            trace_decay=trace_decay,
        )
    )(key=jax.random.key(0))
    expected = chain_by_hand(60, trace_decay, limit)
    np.testing.assert_allclose(result.table[:, 0], expected, atol=1e-6)
    np.testing.assert_allclose(result.lengths, min(limit, 5))
    np.testing.assert_allclose(result.returns, float(limit >= 5))
    assert limit == 3 or (result.table[:5] > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("trace_decay", [0.0, 0.7])
def test_q_learning_finds_the_optimal_values(trace_decay):
    """Without pull, the cell is the whole state and nothing is random."""
    env, params = envs.make(
        "gravity", rows=3, columns=3, pull=0.0, walls=(), max_steps_in_episode=50
    )
    train = functools.partial(
        train_table,
        env,
        params,
        steps=30_000,
        points=1,
        algorithm="q_learning",
        learning_rate=0.5,
        discount=GAMMA,
        trace_decay=trace_decay,
        epsilon=0.8,
    )
    table = np.asarray(jax.jit(train)(key=jax.random.key(0)).table)
    for row, column, action in itertools.product(range(3), range(3), range(4)):
        if (row, column) == env.cookie:
            continue
        step = ((-1, 0), (0, 1), (1, 0), (0, -1))[action]
        to = np.clip((row + step[0], column + step[1]), 0, 2)
        np.testing.assert_allclose(table[3 * row + column, action], GAMMA ** to.sum(), atol=2e-3)


# Action 0, then action 1: half of what Recall asks, which one bit is enough for.
TWO_STEPS = ((0.0, 1.0), (0.0, 0.0))
GAMES = {"recall": RECALL, "two steps": TWO_STEPS}


@functools.cache
def late_returns(game, memory):
    """Mean return over the last fifth of the training, by seed."""
    env = envs.ActionSequence(GAMES[game])
    env = envs.ExternalMemory(env, memory)
    train = functools.partial(
        train_table,
        env,
        env.default_params,
        steps=20_000,
        points=5,
        trace_decay=0.9,
        epsilon=0.05,
    )
    keys = jax.random.split(jax.random.key(0), 8)
    return np.asarray(jax.jit(jax.vmap(lambda key: train(key=key)))(keys).returns[:, -1])


@pytest.mark.parametrize(
    ("game", "memory", "without"),
    # The best memoryless policies are stochastic and get 1/27 and 1/4.
    [
        pytest.param("recall", "B2", 1 / 27, marks=pytest.mark.slow),
        pytest.param("recall", "OA1", 1 / 27, marks=pytest.mark.slow),
        pytest.param("two steps", "B1", 1 / 4, marks=pytest.mark.slow),
        pytest.param("two steps", "O1", 1 / 4, marks=pytest.mark.slow),
    ],
)
def test_learns_with_a_memory_what_it_cannot_learn_without(game, memory, without):
    assert (late_returns(game, "K0") < without + 0.05).all()
    # Three actions in a row are not explored with a probability of 0.86.
    assert (late_returns(game, memory) > 0.7).all()


def test_seeds_differ_and_are_reproducible():
    env, params = envs.make("gravity", external_memory="O1")
    train = jax.jit(
        jax.vmap(lambda key: train_table(env, params, steps=400, points=2, key=key).table)
    )
    keys = jax.random.split(jax.random.key(1), 3)
    first, again = np.asarray(train(keys)), np.asarray(train(keys))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first[0], first[1])
    assert first.shape == (3, 15 * 16, 8) and first.dtype == np.float32


@pytest.mark.parametrize("space", [spaces.Discrete(5), envs.MultiDiscrete((3, 2, 4))])
def test_every_observation_has_its_row(space):
    counts = (space.n,) if isinstance(space, spaces.Discrete) else space.nvec
    elements = np.array(list(itertools.product(*map(range, counts))), np.int32)
    if len(counts) == 1:
        elements = elements[:, 0]
    rows = jax.vmap(lambda x: table_index(space, x))(elements)
    np.testing.assert_array_equal(rows, np.arange(table_rows(space)))


@pytest.mark.parametrize(
    ("error", "name", "options", "message"),
    [
        (TypeError, "CartPole-v1", {}, r"`space` \(=Box.*\) must be Discrete or MultiDiscrete\."),
        (TypeError, "Pendulum-v1", {}, r"`env` must have Discrete actions, but they are Box"),
        (ValueError, "MemoryS7", {}, r"`env` has \d+ observations times 7 actions, which must be"),
        (ValueError, "gravity", {"steps": 10, "points": 3}, r"`steps` \(=10\) must be a positive"),
        (ValueError, "gravity", {"algorithm": "td"}, r"`algorithm` \(='td'\) must be 'sarsa' or"),
        (ValueError, "gravity", {"learning_rate": 0.0}, r"`learning_rate` \(=0\.0\) must be above"),
        (ValueError, "gravity", {"discount": 1.1}, r"`discount` \(=1\.1\) must be from 0 to 1\."),
        (ValueError, "gravity", {"trace_decay": -1.0}, r"`trace_decay` \(=-1\.0\) must be from 0"),
        (ValueError, "gravity", {"epsilon": 2.0}, r"`epsilon` \(=2\.0\) must be from 0 to 1\."),
    ],
)
def test_values_that_break_a_rule(error, name, options, message):
    env, params = envs.make(name)
    with pytest.raises(error, match=message):
        train_table(env, params, **{"steps": 100, **options}, key=jax.random.key(0))
