"""Diagnostics of any length: the returns of policies with memory, and the most without."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from tests.envs.episodes import EPISODES, play, returns, uniformly


def close_to(total, expected):
    """Whether the mean of many episodes is what is expected, within four standard errors."""
    return abs(total.mean() - expected) < 4 * max(total.std(), 1e-9) / math.sqrt(len(total))


# The memory chain.


def recalled(blank):
    return lambda seen, time, key: (seen[0] >> jnp.maximum(seen[time] - blank - 1, 0)) % 2


@pytest.mark.slow
@pytest.mark.parametrize(("length", "bits"), [(5, 3), (1, 1), (60, 2)])
def test_memory_chain(length, bits):
    env = envs.MemoryChain(length=length, bits=bits)
    seen, reward, terminated, truncated, state = play(env, recalled(env.blank), length + 1)
    assert (returns((seen, reward)) == env.best_return).all()
    assert terminated[:, -1].all() and not terminated[:, :-1].any() and not truncated.any()
    assert (np.asarray(reward)[:, :-1] == 0).all()
    # Blanks, and then a question, uniformly drawn as the bits are.
    assert (np.asarray(seen)[:, 1:length] == env.blank).all()
    for drawn, count in (
        (np.asarray(seen)[:, 0], 2**bits),
        (np.asarray(seen)[:, length] - env.blank - 1, bits),
    ):
        expected = EPISODES / count
        counts = np.bincount(drawn, minlength=count)
        assert len(counts) == count
        assert ((counts - expected) ** 2 / expected).sum() < count + 5 * math.sqrt(2 * count)
    # Whatever the answer, each bit is 0 or 1 alike: no policy without memory has more.
    answer = np.asarray(state.context[:, 0]) >> np.asarray(state.asked[:, 0]) & 1
    assert close_to(2.0 * answer - 1, env.memoryless_return)


# Mortar Mayhem.


def follows(length):
    return lambda seen, time, key: seen[jnp.maximum(time - length, 0)].clip(0)


def to_a_corner(env):
    """Up, along the border to the left, and then stay: what is seen last is the cell."""

    def policy(seen, time, key):
        cell = seen[time] - 5
        row, column = cell // env.size, cell % env.size
        return jnp.where(row > 0, 1, jnp.where(column > 0, 4, 0))

    return policy


MOVES = ((0, 0), (-1, 0), (0, 1), (1, 0), (0, -1))


def best_without_the_commands(length, size):
    """Dynamic programming over cell and time, which is more than a memoryless policy knows."""

    def inside(cell):
        return all(0 <= x < size for x in cell)

    cells = list(itertools.product(range(size), repeat=2))
    value = dict.fromkeys(cells, 0.0)
    for _ in range(length):
        after = value
        value = {}
        for row, column in cells:
            reached = [(row + down, column + right) for down, right in MOVES]
            reached = [cell for cell in reached if inside(cell)]
            value[row, column] = max(1 / length + after[c] for c in reached) / len(reached)
    return value[size // 2, size // 2]


@pytest.mark.parametrize(("length", "size"), [(1, 3), (2, 3), (3, 3), (9, 3), (5, 5), (12, 7)])
def test_mortar_mayhem_without_memory_is_enumerated(length, size):
    env = envs.MortarMayhem(length=length, size=size)
    assert abs(env.memoryless_return - best_without_the_commands(length, size)) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(("length", "size"), [(9, 3), (5, 5)])
def test_mortar_mayhem(length, size):
    env = envs.MortarMayhem(length=length, size=size)
    seen, reward, terminated, truncated, state = play(env, follows(length), 2 * length)
    np.testing.assert_allclose(returns((seen, reward)), env.best_return, rtol=1e-6)
    assert (np.asarray(reward)[:, :length] == 0).all()
    assert terminated[:, -1].all() and not terminated[:, :-1].any() and not truncated.any()
    commands = np.asarray(state.commands[:, 0])
    np.testing.assert_array_equal(np.asarray(seen)[:, :length], commands)
    # From the middle each command is as likely; and no command leaves the grid.
    counts = np.bincount(commands[:, 0], minlength=5)
    assert ((counts - EPISODES / 5) ** 2 / (EPISODES / 5)).sum() < 5 + 5 * math.sqrt(10)
    cell = size // 2 + np.cumsum(np.asarray(MOVES)[commands], axis=1)
    assert cell.min() >= 0 and cell.max() < size
    walked = np.asarray(seen)[:, length + 1 : 2 * length + 1] - 5
    np.testing.assert_array_equal(walked, cell[:, :, 0] * size + cell[:, :, 1])
    assert close_to(returns(play(env, to_a_corner(env), 2 * length)), env.memoryless_return)
    # A wrong step ends it.
    record = play(
        env, lambda seen, time, key: (follows(length)(seen, time, key) + 1) % 5, 2 * length
    )
    assert (returns(record) == 0).all() and np.asarray(record[2])[:, length].all()


# Mystery Path.


def avoids(length):
    """In each column the rows in order: as many are known not to hold as falls were from there."""

    def policy(seen, time, key):
        past = jnp.arange(seen.shape[0] - 1) < time
        fell = past & (seen[1:] == 0) & (seen[:-1] == seen[time])
        return jnp.sum(fell)

    return policy


@pytest.mark.slow
@pytest.mark.parametrize(("length", "rows"), [(3, 3), (1, 2)])
def test_mystery_path(length, rows):
    env = envs.MysteryPath(length=length, rows=rows)
    steps = envs.episode_steps(env, env.default_params)
    seen, reward, terminated, truncated, state = play(env, avoids(length), steps)
    record = seen, reward, terminated
    assert (returns(record) == env.best_return).all() and not truncated.any()
    end = np.asarray(terminated).argmax(axis=1)
    falls = np.asarray(state.falls)[np.arange(EPISODES), end]
    assert falls.max() <= env.most_falls == length * (rows - 1)
    assert close_to(falls, length * (rows - 1) / 2)
    assert close_to(returns(play(env, uniformly(rows), steps)), env.memoryless_return)


def test_mystery_path_of_any_length_has_a_chance():
    env = envs.MysteryPath(length=50)
    assert env.memoryless_return == pytest.approx((env.most_falls + 1) * 3.0**-50, rel=1e-12)


def test_mystery_path_without_memory_is_at_most_the_formula():
    """All policies of two columns of two rows, on a grid of probabilities, exactly."""
    env = envs.MysteryPath(length=2, rows=2)
    up = np.linspace(0, 1, 21)
    first, second = np.meshgrid(up, up)
    of = [
        (first if a else 1 - first) * (second if b else 1 - second) for a in (0, 1) for b in (0, 1)
    ]
    value = np.mean([1 - (1 - x) ** (env.most_falls + 1) for x in of], axis=0)
    assert abs(value.max() - env.memoryless_return) < 1e-12
    assert np.unravel_index(value.argmax(), value.shape) == (10, 10)  # uniform steps


@pytest.mark.slow
def test_one_fall_too_many_ends_it():
    env = envs.MysteryPath(length=2, rows=2)
    params = env.default_params
    state = env.reset(jax.random.key(0), params)[1]
    for falls, ends in ((1, False), (2, True)):
        at = state.replace(path=jnp.array([1, 1], jnp.int32), falls=jnp.int32(falls))
        column, after, reward, terminated, _ = env.step_env(jax.random.key(0), at, 0, params)
        assert (int(column), int(after.falls), float(reward)) == (0, falls + 1, 0)
        assert bool(terminated) == ends


def test_returns_that_are_known_of_the_others():
    maze, copy = envs.TMaze(7), envs.CopyTask(3)
    assert (maze.best_return, maze.memoryless_return) == (4, 1.95)
    assert (copy.best_return, copy.memoryless_return) == (1, 0)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("memory_chain", {"length": 0}, r"`length` \(=0\) must be a whole number of at least 1\."),
        ("memory_chain", {"bits": 11}, r"`bits` \(=11\) must be a whole number from 1 to 10\."),
        ("mortar_mayhem", {"length": 0}, r"`length` \(=0\) must be a whole number of at least 1\."),
        ("mortar_mayhem", {"size": 4}, r"`size` \(=4\) must be odd, so that there is a middle\."),
        (
            "memory_chain",
            {"length": 2**31 - 1},
            r"time limit \(=\d+ steps\) .* MemoryChain .*2\^31",
        ),
        ("mystery_path", {"length": 2000, "rows": 2000}, r"of MysteryPath must be below 2\^31\."),
        ("t_maze", {"length": 2**31 // 10}, r"time limit \(=2147483650 steps\) that follows from"),
        ("mystery_path", {"rows": 1}, r"`rows` \(=1\) must be a whole number of at least 2\."),
    ],
)
def test_values_that_break_a_rule(name, options, message):
    with pytest.raises(ValueError, match=message):
        envs.make(name, **options)
