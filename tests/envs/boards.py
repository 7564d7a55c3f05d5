"""What the tests of boards and mazes share: boards as arrays, and playing recorded actions."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


def packed(board):
    """A Boolean array `[..., rows, columns]` as rows of bits."""
    columns = np.arange(board.shape[-1], dtype=np.uint32)
    return (np.asarray(board, np.uint32) << columns).sum(-1, dtype=np.uint32)


def unpacked(words, columns):
    """Rows of bits as a Boolean array `[..., rows, columns]`."""
    return (np.asarray(words)[..., None] >> np.arange(columns, dtype=np.uint32)) & 1 == 1


WAYS = ((0, -1), (0, 1), (-1, 0), (1, 0))
"""The moves in a maze: left, right, up, down."""


def distances(is_open, origin):
    """Steps from a cell to every other; -1 where there is no way."""
    found = np.full(is_open.shape, -1)
    found[origin], reached = 0, [origin]
    for y, x in reached:
        for dy, dx in WAYS:
            cell = y + dy, x + dx
            inside = min(cell) >= 0 and max(cell) < len(is_open)
            if inside and is_open[cell] and found[cell] < 0:
                found[cell] = found[y, x] + 1
                reached.append(cell)
    return found


class Played(NamedTuple):
    """An episode: what every step brought, up to its end."""

    action: np.ndarray
    observation: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


def play_popgym(env, policy):
    """Play an episode of POPGym's environment, after its reset, with actions `policy(time)`."""
    steps, done = [], False
    while not done:
        action = policy(len(steps))
        observation, reward, terminated, truncated, _ = env.step(action)
        steps.append((action, observation, reward, terminated, truncated))
        done = terminated or truncated
    return Played(*map(np.asarray, zip(*steps, strict=True)))


@functools.partial(jax.jit, static_argnums=0)
def _play(env, params, states, actions):
    def step(state, action):
        out = env.step(jax.random.key(0), state, action, params)
        _, state, reward, terminated, truncated, info = out
        return state, (info["final_observation"], reward, terminated, truncated)

    return jax.vmap(lambda state, actions: jax.lax.scan(step, state, actions)[1])(states, actions)


def assert_same_episodes(env, params, states, theirs):
    """Our environment, from these states, gives for the same actions what POPGym's gave."""
    steps = max(len(played.reward) for played in theirs)
    actions = np.zeros((len(theirs), steps, *theirs[0].action.shape[1:]), np.int32)
    for i, played in enumerate(theirs):
        actions[i, : len(played.action)] = played.action
    ours = jax.device_get(_play(env, params, states, jnp.asarray(actions)))
    for i, played in enumerate(theirs):
        observation, reward, terminated, truncated = (x[i, : len(played.reward)] for x in ours)
        np.testing.assert_array_equal(observation, played.observation)
        np.testing.assert_array_equal(reward, played.reward.astype(np.float32))
        np.testing.assert_array_equal(terminated, played.terminated)
        np.testing.assert_array_equal(truncated, played.truncated)


def assert_distribution(counts, probabilities):
    """The counts of categories are a sample from these probabilities (χ², error 1e-6)."""
    from scipy import stats  # which takes half a second, of every worker that collects tests

    counts, expected = np.asarray(counts), np.asarray(probabilities) * np.sum(counts)
    assert expected.min() > 5
    statistic = np.sum((counts - expected) ** 2 / expected)
    assert statistic < stats.chi2.isf(1e-6, len(counts) - 1)


def assert_same_distribution(first, second):
    """Two lists of counts of the same categories come from one distribution (χ², error 1e-6)."""
    from scipy import stats

    counts = np.stack([first, second]).astype(float)
    rare = counts.sum(0) < 20  # one category for all of these
    counts = np.concatenate([counts[:, ~rare], counts[:, rare].sum(1, keepdims=True)], axis=1)
    counts = counts[:, counts.sum(0) > 0]
    assert counts.shape[1] > 1
    assert stats.chi2_contingency(counts).pvalue > 1e-6


def assert_mean(samples, expected):
    """The samples have this mean, up to five standard errors."""
    samples = np.asarray(samples, np.float64)
    error = samples.std() / np.sqrt(len(samples))
    assert error > 0
    assert abs(samples.mean() - expected) < 5 * error
