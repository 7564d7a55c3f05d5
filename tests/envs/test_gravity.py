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
            inside = 0 <= to[0] < env.rows and 0 <= to[1] < env.columns
            if not inside or to in env.walls:
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


def open_cells(env):
    cells = np.ndindex(env.rows, env.columns)
    return [row * env.columns + column for row, column in cells if (row, column) not in env.walls]


def chains(env, policies):
    """Expected rewards `[policy, place]` and transitions of what goes on, `[policy, place, place]`.

    Policies are probabilities `[policy, cell, action]`; a place is the force and an open cell.
    """
    reward, going_on = rewards(env, model(env))
    cells = open_cells(env)
    reward, going_on = reward[:, cells], going_on[:, cells][..., cells]
    policies, places = policies[:, cells], 2 * len(cells)
    reward = np.einsum("pca,fca->pfc", policies, reward).reshape(-1, places)
    matrix = np.einsum("pca,fcagd->pfcgd", policies, going_on, optimize=True)
    return reward, matrix.reshape(-1, places, places)


def at_start(env, values):
    """Of values by place, that of the start with the force on."""
    cells = open_cells(env)
    return values[:, len(cells) + cells.index(env.start[0] * env.columns + env.start[1])]


def memoryless_values(env, policies):
    """The start's discounted value under each policy."""
    reward, matrix = chains(env, policies)
    discounted = np.eye(matrix.shape[1]) - DISCOUNT * matrix
    return at_start(env, np.linalg.solve(discounted, reward[..., None])[..., 0])


def expected_steps(env, policies):
    """The mean number of steps to the cookie without a limit; infinite where it may not be met."""
    _, matrix = chains(env, policies)
    later = matrix
    for _ in range(20):  # after a million steps
        later = later @ later
    steps = np.full(len(matrix), np.inf)
    met = at_start(env, later.sum(axis=-1)) < 1e-9
    # From places that are not left, which the start does not lead to, the sum would be infinite.
    left = later[met].sum(axis=-1) < 1e-9
    proper = np.where(left[:, :, None] & left[:, None, :], matrix[met], 0)
    one = np.ones((*left.shape, 1))
    steps[met] = at_start(env, np.linalg.solve(np.eye(proper.shape[1]) - proper, one)[..., 0])
    return steps


def steps_within_the_limit(env, policies):
    """The mean number of steps of an episode, which has at most 100."""
    _, matrix = chains(env, policies)
    steps = np.zeros(matrix.shape[:2])
    for _ in range(100):
        steps = 1 + np.einsum("pij,pj->pi", matrix, steps)
    return at_start(env, steps)


def deterministic(actions):
    """Probabilities of one action per cell, `[policy, cell]`."""
    return np.eye(4)[np.asarray(actions)]


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"walls": ()},
        COLUMN,
        {"rows": 4, "columns": 2, "button": (1, 1), "pull": 0.3, "walls": ((2, 1),)},
    ],
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
def test_no_memoryless_policy_is_optimal():
    """All 4^7 policies that take one action for each of the seven open cells."""
    env, params = envs.make("gravity")
    assert open_cells(env) == [0, 5, 10, 11, 12, 13, 14]
    actions = np.zeros((4**7, 15), int)
    actions[:, open_cells(env)] = list(itertools.product(range(4), repeat=7))
    policies = deterministic(actions)
    best = best_value(env)
    np.testing.assert_allclose(best, DISCOUNT**9, rtol=1e-12)  # ten steps
    values = memoryless_values(env, policies)
    assert values.max() < 0.35 * best
    steps = expected_steps(env, policies)
    up = (actions[:, [5, 10]] == UP).all(axis=1)
    # The others do not meet the cookie for sure: it is met by waiting for the force to fail twice.
    np.testing.assert_allclose(steps[up], 110, rtol=1e-9)
    assert np.isinf(steps[~up]).all()
    within = steps_within_the_limit(env, policies)
    assert abs(within.min() - 66.2018) < 1e-4 and params.max_steps_in_episode == 100


def test_the_best_stochastic_policy_that_was_found():
    """It takes 70.5 steps, and giving any cell's action more weight does not make it better."""
    env, _ = envs.make("gravity")
    policy = np.zeros((15, 4))
    policy[[0, 5], UP] = 1
    policy[10, [UP, RIGHT]] = 0.6921, 0.3079
    policy[[11, 12], RIGHT] = policy[[11, 12], LEFT] = 0.5
    policy[13, [RIGHT, LEFT]] = 0.4142, 0.5858
    policy[14, LEFT] = 1
    policies = [policy]
    for cell, action in itertools.product(open_cells(env)[1:], range(4)):
        policies.append(policy.copy())
        policies[-1][cell] = 0.99 * policy[cell] + 0.01 * np.eye(4)[action]
    found, *others = expected_steps(env, np.array(policies))
    assert abs(found - 70.5385) < 1e-3
    assert min(others) > found - 1e-3


def way(cell, back):
    """Right, or on the way back left along the bottom and then up."""
    return jnp.where(back, jnp.where(cell % 5 == 0, UP, LEFT), RIGHT)


def back_b(o):
    return (o[0] == 14) | (o[1] == 1)


def back_o(o):
    return (o[0] == 14) | (o[1] == 15)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    ("memory", "act"),
    [
        # The last cell shows which way the agent goes.
        ("K1", lambda o, carry: (way(o[0], (o[0] == 14) | (o[1] - 1 > o[0])), carry)),
        # The bit says that the button was pressed.
        ("B1", lambda o, carry: (way(o[0], back_b(o)) + 4 * back_b(o), carry)),
        # The button's cell is worth remembering.
        ("O1", lambda o, carry: (way(o[0], back_o(o)) + 4 * (o[0] == 14), carry)),
    ],
)
def test_a_small_memory_is_enough(memory, act):
    env, params = envs.make("gravity", external_memory=memory)
    np.testing.assert_allclose(returns(env, params, act, episodes=4), DISCOUNT**9, rtol=1e-5)


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
def test_on_the_open_grid_a_memoryless_policy_is_optimal():
    """Along the bottom, up at the button, back along the top: ten steps, no cell twice."""
    env, params = envs.make("gravity", walls=())
    policy = np.array(5 * [LEFT] + 4 * [RIGHT] + [UP] + 4 * [RIGHT] + [UP])
    np.testing.assert_allclose(best_value(env), DISCOUNT**9, rtol=1e-12)
    value = memoryless_values(env, deterministic([policy]))
    np.testing.assert_allclose(value, DISCOUNT**9, rtol=1e-12)
    table = jnp.asarray(policy, jnp.int32)
    got = returns(env, params, lambda o, carry: (table[o], carry), episodes=4)
    np.testing.assert_allclose(got, DISCOUNT**9, rtol=1e-5)


@pytest.mark.slow
def test_in_a_column_a_memory_is_better():
    """Every memoryless policy, and for each kind of memory one that does as well as sight."""
    env, params = envs.make("gravity", **COLUMN)
    policies = list(itertools.product((UP, DOWN), repeat=5))
    values = memoryless_values(env, deterministic(policies))
    best = best_value(env)
    np.testing.assert_allclose(best, DISCOUNT**5, rtol=1e-12)  # down, down, four times up
    assert max(values) < 0.99 * best
    # The best of them only goes up, and is pulled down to the button, but not surely.
    assert policies[values.argmax()] == 5 * (UP,)
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
        (ValueError, {"rows": 0}, r"`rows` \(=0\) must be a whole number of at least 1\."),
        (TypeError, {"columns": 2.0}, r"`columns` \(=2\.0\) must be a whole number\."),
        (TypeError, {"start": 3}, r"`start` \(=3\) must be two integers, \(row, column\)\."),
        (TypeError, {"start": (0.5, 1)}, r"`start` \(=0\.5\) must be a whole number\."),
        (ValueError, {"button": (3, 0)}, r"`button` \(=\(3, 0\)\) must be inside the grid of rows"),
        (ValueError, {"cookie": (2, 0)}, r"`cookie` \(=\(2, 0\)\) must not be where `start` is"),
        (ValueError, {"cookie": (2, 4)}, r"`cookie` .* must not be where `button` is"),
        (
            ValueError,
            {"button": (1, 1)},
            r"`button` \(=\(1, 1\)\) must not be on one of the `walls`",
        ),
        (ValueError, {"walls": ((0, 0),)}, r"`cookie` \(=\(0, 0\)\) must not be on .* `walls`"),
        (ValueError, {"walls": ((3, 0),)}, r"`walls` \(=\(3, 0\)\) must be inside the grid"),
        (TypeError, {"walls": 3}, r"`walls` \(=3\) must be a sequence of \(row, column\)\."),
        (ValueError, {"pull": 1.5}, r"`pull` \(=1\.5\) must be in \[0, 1\]\."),
    ],
)
def test_values_that_break_a_rule(error, options, message):
    with pytest.raises(error, match=message):
        envs.make("gravity", **options)
