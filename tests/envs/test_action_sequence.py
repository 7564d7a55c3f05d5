"""Recall and its variations: all policies, without a memory and with each kind."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from agents.envs.remembering.action_sequence import RECALL, RECALL_FOUR, RECALL_VARIATION

TABLES = {"recall": RECALL, "recall_variation": RECALL_VARIATION, "recall_four": RECALL_FOUR}


@functools.cache
def graph(name, memory):
    """All that can happen, as `{state: [(reward, next state or None) by action]}` and the start.

    A state is the game's own and what is observed; nothing is random, so it has one successor for
    each action.
    """
    env, params = envs.make(name, external_memory=memory)
    actions = jnp.arange(env.num_actions, dtype=jnp.int32)
    key = jax.random.key(0)
    step = jax.jit(jax.vmap(lambda state, action: env.step(key, state, action, params), (None, 0)))
    nodes, found = {}, []

    def node(observation, state):
        return (*map(int, jax.tree.leaves(state)[:2]), *np.atleast_1d(observation).tolist())

    observation, state = jax.device_get(env.reset(key, params))
    start = node(observation, state)
    found = [(start, state)]
    while found:
        place, state = found.pop()
        if place in nodes:
            continue
        observation, following, reward, terminated, truncated, _ = jax.device_get(
            step(jax.tree.map(jnp.asarray, state), actions)
        )
        assert not truncated.any()
        nodes[place] = []
        for a in range(len(actions)):
            after = jax.tree.map(lambda x, a=a: x[a], following)
            to = None if terminated[a] else node(observation[a], after)
            nodes[place].append((float(reward[a]), to))
            if to is not None:
                found.append((to, after))
    return nodes, start


def planned(name, memory):
    """The best return with everything in sight, by dynamic programming."""
    nodes, start = graph(name, memory)

    @functools.cache
    def value(place):
        return max(r + (0 if to is None else value(to)) for r, to in nodes[place])

    return value(start)


def deterministic(name, memory):
    """The best return of the policies with one action for each observation: all are tried."""
    nodes, start = graph(name, memory)
    best = -np.inf

    def search(place, total, policy):
        """Choose an action only where an observation is met for the first time."""
        nonlocal best
        while place is not None:
            if place[2:] not in policy:
                for action in range(len(nodes[place])):
                    search(place, total, {**policy, place[2:]: action})
                return
            reward, place = nodes[place][policy[place[2:]]]
            total += reward
        best = max(best, total)

    search(start, 0.0, {})
    return best


def test_the_tables():
    """Written out in the rules: every sequence of actions and its return."""
    variation = {"000": 0, "001": 2, "010": 3, "011": 1, "100": -100, "101": -100, "110": -10}
    expected = {
        "recall": {a: float(a == (0, 1, 2)) for a in itertools.product(range(3), repeat=3)},
        "recall_variation": {tuple(map(int, k)): v for k, v in (variation | {"111": -10}).items()},
        "recall_four": {
            (i, j): r
            for i, row in enumerate(
                [(-5, 0.5, 1, 0.5), (0, 0.5, -0.5, 0.75), (0, 0.5, -5, 0.5), (0, 0.5, -5, 0.5)]
            )
            for j, r in enumerate(row)
        },
    }
    for name, returns in expected.items():
        nodes, start = graph(name, None)
        for actions, result in returns.items():
            place, total = start, 0.0
            for action in actions:
                reward, place = nodes[place][action]
                total += reward
            assert place is None and total == result
        assert planned(name, None) == max(returns.values())
        assert envs.episode_steps(*envs.make(name)) == len(actions)


BEST = [
    ("recall", None, 0.0),  # three different actions on one observation
    ("recall", "K1", 0.0),  # empty, then 0, then 0 again
    ("recall", "K2", 1.0),
    ("recall", "B1", 0.0),  # two contents, three actions
    ("recall", "B2", 1.0),
    ("recall", "O1", 0.0),
    ("recall", "O2", 1.0),
    ("recall", "OA1", 1.0),  # the last action tells the next one
    ("recall_variation", None, 0.0),
    ("recall_variation", "K1", 1.0),  # 0, then twice 1
    ("recall_variation", "K2", 3.0),
    ("recall_variation", "B1", 3.0),
    ("recall_variation", "B2", 3.0),
    ("recall_variation", "O1", 1.0),
    ("recall_variation", "O2", 3.0),
    ("recall_variation", "OA1", 3.0),
    ("recall_four", None, 0.5),
    ("recall_four", "K1", 1.0),
    ("recall_four", "K2", 1.0),
    ("recall_four", "B1", 1.0),
    ("recall_four", "B2", 1.0),
    ("recall_four", "O1", 1.0),
    ("recall_four", "O2", 1.0),
    ("recall_four", "OA1", 1.0),
]


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    ("name", "memory", "best"),
    [pytest.param(*row, marks=() if row[0] == "recall" else pytest.mark.slow) for row in BEST],
)
def test_best_deterministic_policy(name, memory, best):
    assert deterministic(name, memory) == best
    # No memory changes what can be had, but only what can be had on what is observed.
    assert planned(name, memory) == planned(name, None) >= best


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "best"), [("recall", 1 / 27), ("recall_variation", 0.0), ("recall_four", 0.5625)]
)
def test_best_stochastic_memoryless_policy(name, best):
    """One distribution for all steps, on a fine grid of the simplex, then by simulation."""
    env, params = envs.make(name)
    table, fine = np.asarray(TABLES[name], np.float64), 24
    grid = itertools.product(range(fine + 1), repeat=env.num_actions)
    policies = np.array([p for p in grid if sum(p) == fine]) / fine
    values = np.broadcast_to(table, (len(policies), *table.shape))
    for _ in range(env.steps):
        values = np.einsum("p...a,pa->p...", values, policies)
    assert values.max() == pytest.approx(best, abs=1e-12)
    policy = jnp.asarray(policies[values.argmax()], jnp.float32)
    episodes = 20_000

    def episode(key):
        state = env.reset(key, params)[1]
        total = jnp.float32(0)
        for key_action in jax.random.split(key, env.steps):
            action = jax.random.categorical(key_action, jnp.log(policy))
            _, state, reward, *_ = env.step(key, state, action, params)
            total += reward
        return total

    returns = jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(2), episodes))
    returns = np.asarray(returns, np.float64)
    assert abs(returns.mean() - best) <= 5 * returns.std() / np.sqrt(episodes)


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        (3.0, r"`rewards` \(of shape \(\)\) must have axes of equal length\."),
        (np.zeros((2, 3)), r"`rewards` \(of shape \(2, 3\)\) must have axes of equal length\."),
        ([[0.0, np.inf], [0.0, 0.0]], r"`rewards` \(=.*\) must be finite numbers\."),
        ([[1.0, 2.0], [3.0]], r"`rewards` \(=\[\[1\.0, 2\.0\], \[3\.0\]\]\) must be an array of"),
        ("ab", r"`rewards` \(='ab'\) must be an array of numbers, \(actions,\) \* steps"),
    ],
)
def test_values_that_break_a_rule(rewards, message):
    with pytest.raises((ValueError, TypeError), match=message):
        envs.ActionSequence(rewards)


@pytest.mark.slow
def test_a_game_of_ones_own():
    env = envs.ActionSequence([[0.0, 1.0], [2.0, 3.0]], title="Mine")
    assert (env.name, env.num_actions, env.steps) == ("Mine", 2, 2)
