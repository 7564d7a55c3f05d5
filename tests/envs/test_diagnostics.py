"""The copy task and the T-maze: exact returns of policies that are known."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from tests.envs.episodes import EPISODES, constantly, play, returns, uniformly

# The copy task.

COPY = envs.CopyTask(max_bits=10)


def copied(seen, time, key):
    """The bit that was seen as many steps ago as there were bits."""
    count = jnp.sum((seen == 0) | (seen == 1))
    return seen[jnp.maximum(time - count, 0)].clip(0)


def counted(seen, time, key):
    """As many ones as were seen, but in no order: all of them first."""
    bits = (seen == 0) | (seen == 1)
    return ((time - jnp.sum(bits)) < jnp.sum(seen == 1)).astype(jnp.int32)


@pytest.mark.slow
def test_copying_has_return_one():
    record = play(COPY, copied, 20)
    np.testing.assert_allclose(returns(record), 1, rtol=0, atol=1e-5)
    assert (np.asarray(record[1]) >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [constantly(0), constantly(1), uniformly(2)],
)
def test_what_does_not_depend_on_the_bits_has_return_zero(policy):
    total = returns(play(COPY, policy, 20))
    # Given n bits the variance is 1/n.
    error = np.sqrt(np.mean(1 / np.arange(1, 11)) / EPISODES)
    assert abs(total.mean()) < 4 * error


@pytest.mark.slow
def test_counting_does_not_solve_it():
    record = play(COPY, counted, 20)
    total, count = returns(record), np.asarray(record[4].count[:, 0])
    for n in range(1, 11):
        got = total[count == n]
        assert abs(got.mean() - 1 / n) < 4 * max(got.std(), 1e-6) / np.sqrt(len(got))
    assert total.mean() < 0.35


@pytest.mark.slow
def test_either_value_of_every_bit_is_scored():
    params = COPY.default_params
    bits = jnp.array([1, 0, 0, 1, 1, 0, 0, 0, 0, 0], jnp.int32)
    _, state = COPY.reset(jax.random.key(0), params)
    step = jax.jit(COPY.step_env)
    for time in range(12):
        at = state.replace(time=jnp.int32(time), count=jnp.int32(6), bits=bits)
        for action in (0, 1):
            _, _, reward, terminated, _ = step(jax.random.key(0), at, action, params)
            sign = 0 if time < 6 else 1 if action == bits[time - 6] else -1
            assert abs(float(reward) - sign / 6) < 1e-7
            assert terminated == (time == 11)


@pytest.mark.slow
def test_sequences_are_uniform_and_followed_by_blanks():
    seen, _, terminated, truncated, state = play(COPY, constantly(0), 20)
    count = np.asarray(state.count[:, 0])
    counts = np.bincount(count, minlength=11)
    assert counts[0] == 0 and len(counts) == 11
    expected = EPISODES / 10
    assert ((counts[1:] - expected) ** 2 / expected).sum() < 9 + 5 * np.sqrt(18)
    time = np.arange(20)
    bits = np.asarray(seen)[:, :20][time < count[:, None]]
    assert set(np.unique(bits)) == {0, 1}
    assert abs(bits.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(bits))
    blanks = (time >= count[:, None]) & (time < 2 * count[:, None])
    assert (np.asarray(seen)[:, :20][blanks] == 2).all()
    first_end = np.asarray(terminated).argmax(axis=1) + 1
    np.testing.assert_array_equal(first_end, 2 * count)
    assert not truncated.any()


# The T-maze.


def remembered(seen, time, key):
    """East, and at the junction the side of the sign."""
    return jnp.where(seen[time] == 3, 2 * seen[0], 1)


@functools.cache
def transitions(corridor):
    """Reward, next position, observation and whether it ends: `[goal_north, position, action]`."""
    env = envs.TMaze(corridor)
    params = env.default_params
    _, state = env.reset(jax.random.key(0), params)

    def one(north, position, action):
        at = state.replace(position=position, goal_north=north)
        seen, after, reward, terminated, _ = env.step_env(jax.random.key(0), at, action, params)
        return reward, after.position, seen, terminated

    for axis in (2, 1, 0):
        one = jax.vmap(one, [0 if axis == i else None for i in range(3)])
    places = jnp.arange(corridor + 1, dtype=jnp.int32)
    table = jax.jit(one)(jnp.array([False, True]), places, jnp.arange(4, dtype=jnp.int32))
    return jax.device_get(table)


@pytest.mark.slow
@pytest.mark.parametrize("corridor", [1, 2, 10])
def test_random_return_of_the_t_maze_is_exact(corridor):
    """Of all transitions together; the closed form is that of a walk that pays at its walls."""
    reward, after, _, terminated = transitions(corridor)
    for north in (0, 1):
        move = np.zeros((corridor + 1, corridor + 1))
        for position, action in np.ndindex(after[north].shape):
            if not terminated[north, position, action]:
                move[position, after[north, position, action]] += 1 / 4
        value = np.linalg.solve(np.eye(corridor + 1) - move, reward[north].mean(axis=1))
        assert abs(value[0] - (1.85 - 0.3 * corridor - 0.1 * corridor**2)) < 1e-5
    # The same by playing, as long as hardly any episode meets the time limit.
    if corridor == 1:
        total = returns(play(envs.TMaze(1), uniformly(4), 20))
        assert abs(total.mean() - 1.45) < 4 * total.std() / np.sqrt(EPISODES)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("corridor", [1, 10])
def test_best_return_of_the_t_maze_is_four(corridor):
    seen, reward, terminated, truncated, _ = play(envs.TMaze(corridor), remembered, corridor + 1)
    assert (np.asarray(reward)[:, -1] == 4).all()
    assert (np.asarray(reward)[:, :-1] == 0).all()
    assert terminated[:, -1].all() and not truncated.any()
    # The sign is either with the same probability, and is seen once.
    assert abs(np.mean(seen[:, 0]) - 0.5) < 4 * 0.5 / np.sqrt(EPISODES)
    assert (np.asarray(seen)[:, 1:corridor] == 2).all()
    assert (np.asarray(seen)[:, corridor] == 3).all()


@pytest.mark.slow
def test_without_memory_half_of_the_turns_are_right():
    policy = lambda seen, time, key: jnp.where(seen[time] == 3, 0, 1)  # noqa: E731
    total = returns(play(envs.TMaze(3), policy, 4))
    np.testing.assert_allclose(np.unique(total), [-0.1, 4], rtol=1e-6)
    assert abs(total.mean() - 1.95) < 4 * 2.05 / np.sqrt(EPISODES)


@pytest.mark.slow
def test_walls_and_signs_of_the_t_maze():
    reward, after, seen, terminated = transitions(2)
    bump = np.float32(-0.1)
    for north, (goal, other) in enumerate([(2, 0), (0, 2)]):
        # North, east, south, west.
        np.testing.assert_array_equal(reward[north, 0], [bump, 0, bump, bump])
        np.testing.assert_array_equal(after[north, 0], [0, 1, 0, 0])
        np.testing.assert_array_equal(reward[north, 1], [bump, 0, bump, 0])
        np.testing.assert_array_equal(after[north, 1], [1, 2, 1, 0])
        assert reward[north, 2, goal] == 4 and reward[north, 2, other] == bump
        np.testing.assert_array_equal(reward[north, 2, [1, 3]], [bump, 0])
        np.testing.assert_array_equal(after[north, 2], [2, 2, 2, 1])
        sign = 1 - north
        np.testing.assert_array_equal(seen[north, 1], [2, 3, 2, sign])
        assert not terminated[north, :2].any()
        np.testing.assert_array_equal(terminated[north, 2], [True, False, True, False])


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    ("env", "last"),
    [
        (envs.CopyTask(6), {"count": jnp.int32(4), "time": jnp.int32(7)}),
        (envs.TMaze(3), {"position": jnp.int32(3), "time": jnp.int32(7)}),
    ],
)
def test_flags_at_the_end_and_at_a_time_limit(env, last):
    params = env.default_params
    _, state = env.reset(jax.random.key(0), params)
    step = jax.jit(env.step)
    for limit, earlier, flags in (
        (8, 0, (True, False)),  # the limit is met, but it is not the reason
        (9, 0, (True, False)),
        (7, 1, (False, True)),
        (9, 1, (False, False)),
    ):
        before = state.replace(**last).replace(time=last["time"] - earlier)
        if earlier and isinstance(env, envs.TMaze):
            before = before.replace(position=jnp.int32(2))
        out = step(jax.random.key(1), before, 0, params.replace(max_steps_in_episode=limit))
        assert (bool(out[3]), bool(out[4])) == flags


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: envs.CopyTask(0),
            ValueError,
            r"`max_bits` \(=0\) must be a whole number of at least 1\.",
        ),
        (
            lambda: envs.TMaze(0),
            ValueError,
            r"`length` \(=0\) must be a whole number of at least 1\.",
        ),
        (
            lambda: envs.make("t_maze", length=2.5),
            TypeError,
            r"`length` \(=2\.5\) must be a wh",
        ),
    ],
)
def test_values_that_break_a_rule(make, error, message):
    with pytest.raises(error, match=message):
        make()
