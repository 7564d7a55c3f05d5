"""Gravity: its transitions by distribution, and what a memory is worth by exact planning."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from agents.envs.remembering.gravity import DOWN, LEFT, RIGHT, UP, EnvState

DISCOUNT = 0.95
COLUMN = {"rows": 5, "columns": 1, "start": (2, 0), "cookie": (0, 0), "button": (4, 0)}


def model(env):
    """Transition probabilities `[force, cell, action, force, cell]`, written from the rules."""
    cells = env.rows * env.columns
    probability = np.zeros((2, cells, 4, 2, cells))
    steps = {UP: (-1, 0), RIGHT: (0, 1), DOWN: (1, 0), LEFT: (0, -1)}
    for force, row, column, action in itertools.product(
        (0, 1), range(env.rows), range(env.columns), range(4)
    ):
        pulled = env.pull if force and action == UP else 0.0
        for move, weight in ((action, 1 - pulled), (DOWN, pulled)):
            to = row + steps[move][0], column + steps[move][1]
            if not (0 <= to[0] < env.rows and 0 <= to[1] < env.columns):
                to = row, column
            after = force ^ (to == env.button and to != (row, column))
            here = row * env.columns + column
            probability[force, here, action, after, to[0] * env.columns + to[1]] += weight
    return probability


def rewards(env, probability):
    """Expected rewards `[force, cell, action]`, and what is left of the probability."""
    cookie = env.cookie[0] * env.columns + env.cookie[1]
    going_on = probability.copy()
    going_on[..., cookie] = 0
    return probability[..., cookie].sum(axis=-1), going_on


def best_value(env):
    """The start's value for an agent that sees the force: what no memory can surpass."""
    reward, going_on = rewards(env, model(env))
    value = np.zeros(reward.shape[:2])
    for _ in range(1000):
        value = (reward + DISCOUNT * np.einsum("fcagd,gd->fca", going_on, value)).max(axis=-1)
    return value[1, env.start[0] * env.columns + env.start[1]]


def memoryless_value(env, policy):
    """The start's value under one action per cell."""
    reward, going_on = rewards(env, model(env))
    cells = len(policy)
    reward = reward[:, np.arange(cells), policy].ravel()
    matrix = going_on[:, np.arange(cells), policy].reshape(2 * cells, 2 * cells)
    value = np.linalg.solve(np.eye(2 * cells) - DISCOUNT * matrix, reward)
    return value[cells + env.start[0] * env.columns + env.start[1]]


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    "options", [{}, COLUMN, {"rows": 4, "columns": 2, "button": (1, 1), "pull": 0.3}]
)
def test_transitions(options):
    env = envs.Gravity(**options)
    params, count = env.default_params, 2000
    force, cell, action = np.indices((2, env.rows * env.columns, 4)).reshape(3, -1)
    row, column = np.divmod(cell, env.columns)

    def step(force, row, column, action, key):
        time = jnp.int32(0)
        state = EnvState(time=time, row=row, column=column, force=force)
        observation, state, reward, terminated, _ = env.step_env(key, state, action, params)
        return observation, state.force, reward, terminated

    step = jax.vmap(jax.vmap(step, (None, None, None, None, 0)))
    keys = jax.random.split(jax.random.key(0), (len(cell), count))
    args = [jnp.asarray(x, jnp.int32) for x in (row, column, action)]
    to, after, reward, terminated = jax.device_get(
        jax.jit(step)(jnp.asarray(force, bool), *args, keys)
    )
    probability = model(env)[force, cell, action]
    frequency = np.zeros_like(probability)
    for i in range(len(cell)):
        np.add.at(frequency[i], (after[i].astype(int), to[i]), 1 / count)
    error = 5 * np.sqrt(probability * (1 - probability) / count)
    assert (np.abs(frequency - probability) <= error + 1e-9).all()
    assert ((probability > 0) & (probability < 1)).any()
    cookie = env.cookie[0] * env.columns + env.cookie[1]
    np.testing.assert_array_equal(terminated, to == cookie)
    np.testing.assert_array_equal(reward, terminated.astype(np.float32))


@pytest.mark.slow
def test_an_episode_begins_with_the_force_on():
    env, params = envs.make("gravity")
    observation, state = env.reset(jax.random.key(0), params)
    assert int(observation) == 10 and bool(state.force)
    assert (env.start, env.cookie, env.button) == ((2, 0), (0, 0), (2, 4))


def returns(env, params, act, episodes=512):
    """Discounted returns of a policy `act(observation, carry) -> action, carry`."""

    def step(loop, key):
        observation, state, carry, scale, total = loop
        action, carry = act(observation, carry)
        observation, state, reward, terminated, truncated, _ = env.step(key, state, action, params)
        total, scale = total + scale * reward, scale * DISCOUNT
        scale = jnp.where(terminated | truncated, 0, scale)
        return (observation, state, carry, scale, total), None

    def episode(key):
        key_reset, key_steps = jax.random.split(key)
        one = jnp.float32(1)
        loop = (*env.reset(key_reset, params), jnp.int32(0), one, 0 * one)
        keys = jax.random.split(key_steps, 100)
        return jax.lax.scan(step, loop, keys)[0][-1]

    keys = jax.random.split(jax.random.key(1), episodes)
    return np.asarray(jax.jit(jax.vmap(episode))(keys), np.float64)


@pytest.mark.slow
def test_by_default_a_memoryless_policy_is_optimal():
    """Along the bottom, up at the button, back along the top: ten steps, no cell twice."""
    env, params = envs.make("gravity")
    policy = np.array(5 * [LEFT] + 4 * [RIGHT] + [UP] + 4 * [RIGHT] + [UP])
    np.testing.assert_allclose(best_value(env), DISCOUNT**9, rtol=1e-12)
    np.testing.assert_allclose(memoryless_value(env, policy), DISCOUNT**9, rtol=1e-12)
    table = jnp.asarray(policy, jnp.int32)
    got = returns(env, params, lambda o, carry: (table[o], carry), episodes=4)
    np.testing.assert_allclose(got, DISCOUNT**9, rtol=1e-5)


@pytest.mark.slow
def test_in_a_column_a_memory_is_better():
    """Every memoryless policy, and for each kind of memory one that does as well as sight."""
    env, params = envs.make("gravity", **COLUMN)
    values = [memoryless_value(env, np.array(p)) for p in itertools.product((UP, DOWN), repeat=5)]
    best = best_value(env)
    np.testing.assert_allclose(best, DISCOUNT**5, rtol=1e-12)  # down, down, four times up
    assert max(values) < 0.99 * best
    # The best of them only goes up, and is pulled down to the button, but not surely.
    np.testing.assert_allclose(max(values), memoryless_value(env, np.full(5, UP)), rtol=1e-12)
    got = returns(env, params, lambda o, carry: (jnp.int32(UP), carry), episodes=8192)
    error = got.std() / np.sqrt(len(got))
    # The time limit of 100 takes away at most what is left of the discounted sum.
    assert abs(got.mean() - max(values)) < 5 * error + DISCOUNT**100

    button, push, went_up = 4, 4, 1

    def with_k(o, carry):  # the last cell shows which way the agent goes
        return jnp.where((o[0] == button) | (o[1] - 1 > o[0]), UP, DOWN), carry

    def with_b(o, carry):  # the bit says that the button was pressed
        up = (o[0] == button) | (o[1] == went_up)
        return jnp.where(up, UP + 4 * went_up, DOWN), carry

    def with_o(o, carry):  # the button's cell is worth remembering
        up = (o[0] == button) | (o[1] == button + 1)
        return jnp.where(up, UP, DOWN) + push * (o[0] == button), carry

    for memory, act in (("K1", with_k), ("B1", with_b), ("O1", with_o), ("OA1", with_o)):
        env, params = envs.make("gravity", external_memory=memory, **COLUMN)
        np.testing.assert_allclose(returns(env, params, act, episodes=4), best, rtol=1e-5)


@pytest.mark.parametrize(
    ("error", "options", "message"),
    [
        (ValueError, {"rows": 0}, r"`rows` \(=0\) must be at least 1\."),
        (TypeError, {"columns": 2.0}, r"`columns` \(=2\.0\) must be an integer\."),
        (TypeError, {"start": 3}, r"`start` \(=3\) must be two integers, \(row, column\)\."),
        (TypeError, {"start": (0.5, 1)}, r"`start` \(=0\.5\) must be an integer\."),
        (ValueError, {"button": (3, 0)}, r"`button` \(=\(3, 0\)\) must be inside the grid of rows"),
        (ValueError, {"cookie": (2, 0)}, r"`cookie` \(=\(2, 0\)\) must not be where `start` is"),
        (ValueError, {"cookie": (2, 4)}, r"`cookie` .* must not be where `button` is"),
        (ValueError, {"pull": 1.5}, r"`pull` \(=1\.5\) must be from 0 to 1\."),
    ],
)
def test_values_that_break_a_rule(error, options, message):
    with pytest.raises(error, match=message):
        envs.make("gravity", **options)
