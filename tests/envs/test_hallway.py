"""The hallways: what is seen from every cell, how moves fail, and scripted policies that earn."""

import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from agents.envs.remembering import hallway_cookie, hallway_keys
from agents.envs.remembering.hallway import CORNERS, LAYOUT, START

FLOOR = [(r, c) for r, row in enumerate(LAYOUT) for c, mark in enumerate(row) if mark != "#"]
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
BUTTON, GOAL, DOORS = hallway_cookie.BUTTON, hallway_keys.GOAL, hallway_keys.DOORS


def cookie_state(row, column, cookie=-1, time=0):
    fields = (time, row, column, cookie)
    return hallway_cookie.EnvState(*(jnp.asarray(x, jnp.int32) for x in fields))


def keys_state(row, column, keys, carries, locked, time=0):
    integers = (jnp.asarray(x, jnp.int32) for x in (time, row, column))
    flags = (jnp.asarray(x, bool) for x in (keys, carries, locked))
    return hallway_keys.EnvState(*integers, *flags)


@functools.cache
def stepper(env):
    """`step_env` for one state, compiled once for each environment."""
    return jax.jit(lambda key, state, action: env.step_env(key, state, action, env.default_params))


def plane(*places):
    expected = np.zeros((17, 15), np.float32)
    for place in places:
        expected[place] = 1
    return expected


def seen_from(cell):
    room = LAYOUT[cell[0]][cell[1]]
    return [place for place in FLOOR if LAYOUT[place[0]][place[1]] == room]


def test_the_map():
    assert {LAYOUT[r][c] for r, c in ((1, 1), (3, 3))} == {"1"}
    assert {LAYOUT[r][c] for r, c in ((13, 1), (15, 3))} == {"2"}
    assert {LAYOUT[r][2] for r in range(4, 13)} == {"0"}
    assert {LAYOUT[8][c] for c in range(3, 14)} == {LAYOUT[6][13]} == {"3"}
    assert [sum(row.count(mark) for row in LAYOUT) for mark in "0123"] == [9, 9, 9, 19]
    reached, queue = {START}, [START]
    while queue:
        row, column = queue.pop()
        new = {(row + r, column + c) for r, c in MOVES} & set(FLOOR) - reached
        reached |= new
        queue += new
    assert reached == set(FLOOR)


@pytest.mark.slow
def test_one_room_is_seen_cookie():
    env = envs.HallwayCookie()
    cells = [(cell, cookie) for cell in FLOOR for cookie in range(-1, 4)]
    rows, columns = np.array([cell for cell, _ in cells]).T
    states = cookie_state(rows, columns, [cookie for _, cookie in cells], np.zeros(len(cells)))
    planes = np.asarray(jax.jit(jax.vmap(env._observe))(states))
    for (cell, cookie), observed in zip(cells, planes, strict=True):
        seen = seen_from(cell)
        objects = [BUTTON], [CORNERS[cookie]] if cookie >= 0 else []
        shown = (plane(*(p for p in places if p in seen)) for places in objects)
        np.testing.assert_array_equal(observed, [plane(cell), plane(*seen), *shown])


@pytest.mark.slow
def test_one_room_is_seen_keys():
    env = envs.HallwayKeys()
    rng = np.random.default_rng(0)
    keys, locked = rng.random((len(FLOOR), 4)) < 0.5, rng.random((len(FLOOR), 2)) < 0.5
    rows, columns = np.array(FLOOR).T
    zeros = np.zeros(len(FLOOR))
    states = keys_state(rows, columns, keys, zeros, locked, zeros)
    planes = np.asarray(jax.jit(jax.vmap(env._observe))(states))
    carrying = np.asarray(jax.jit(jax.vmap(env._observe))(states.replace(carries=~states.carries)))
    np.testing.assert_array_equal(planes, carrying)  # whether a key is carried is not seen
    for i, cell in enumerate(FLOOR):
        seen = seen_from(cell)
        objects = (
            [p for p, there in zip(CORNERS, keys[i], strict=True) if there],
            [p for p, there in zip(DOORS, locked[i], strict=True) if there],
            [GOAL],
        )
        shown = (plane(*(p for p in places if p in seen)) for places in objects)
        np.testing.assert_array_equal(planes[i], [plane(cell), plane(*seen), *shown])


@pytest.mark.slow
@pytest.mark.parametrize("slip", [0.05, 0.5])
@pytest.mark.parametrize("make", [envs.HallwayCookie, envs.HallwayKeys])
def test_moves_fail(make, slip):
    """From the middle of a room, where every direction is free; bounds of five deviations."""
    env, count = make(slip), 20_000
    _, state = env.reset(jax.random.key(0), env.default_params)
    state = state.replace(row=jnp.int32(2), column=jnp.int32(2))
    keys = jax.random.split(jax.random.key(1), (4, count))
    walk = jax.vmap(jax.vmap(lambda key, a: env.walk(key, state, a), (0, None)))
    row, column = np.asarray(jax.jit(walk)(keys, jnp.arange(4, dtype=jnp.int32)))
    for action in range(4):
        for move, (r, c) in enumerate(MOVES):
            p = 1 - slip if move == action else slip / 3
            frequency = ((row[action] == 2 + r) & (column[action] == 2 + c)).mean()
            assert abs(frequency - p) < 5 * np.sqrt(p * (1 - p) / count)


@pytest.mark.slow
@pytest.mark.parametrize("make", [envs.HallwayCookie, envs.HallwayKeys])
def test_walls_hold(make):
    env = make(slip=0.0)
    _, state = env.reset(jax.random.key(0), env.default_params)
    cells = [(cell, action) for cell in FLOOR for action in range(4)]
    rows, columns = jnp.asarray([cell for cell, _ in cells], jnp.int32).T
    actions = jnp.asarray([action for _, action in cells], jnp.int32)

    def walk(row, column, action):
        return env.walk(jax.random.key(0), state.replace(row=row, column=column), action)

    got = np.stack(jax.jit(jax.vmap(walk))(rows, columns, actions), 1)
    for (cell, action), to in zip(cells, got.tolist(), strict=True):
        target = cell[0] + MOVES[action][0], cell[1] + MOVES[action][1]
        assert tuple(to) == (target if target in FLOOR else cell)


def towards():
    """The move on a shortest way, `[target row, target column, row, column]`."""
    table = np.zeros((17, 15, 17, 15), np.int32)
    for target in FLOOR:
        queue, found = collections.deque([target]), {target}
        while queue:
            cell = queue.popleft()
            for action, (r, c) in enumerate(MOVES):
                before = cell[0] - r, cell[1] - c
                if before in FLOOR and before not in found:
                    found.add(before)
                    table[(*target, *before)] = action
                    queue.append(before)
    return jnp.asarray(table)


def cookie_target(state):
    places = jnp.asarray((*CORNERS, BUTTON), jnp.int32)
    return places[jnp.where(state.cookie < 0, 4, state.cookie)]


def keys_target(state):
    door = jnp.where(state.locked[0], jnp.asarray(DOORS[0]), jnp.asarray(DOORS[1]))
    key = jnp.asarray(CORNERS)[jnp.argmax(state.keys)]
    unlocking = jnp.where(state.carries, door, key)
    return jnp.where(state.locked.any(), unlocking, jnp.asarray(GOAL)).astype(jnp.int32)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "target", "first", "cycle"),
    [
        # To the button 11 steps, from there to any corner 19, and back.
        (envs.HallwayCookie, cookie_target, 30, 38),
        # Key 8, first door 15, back to a key 15, second door 17, goal 4.
        (envs.HallwayKeys, keys_target, 59, 59),
    ],
)
@pytest.mark.parametrize("slip", [0.0, 0.05])
def test_a_scripted_policy_earns(make, target, first, cycle, slip):
    env, table, episodes = make(slip), towards(), 4
    params = env.default_params

    def step(state, key):
        row, column = target(state)
        action = table[row, column, state.row, state.column]
        _, state, reward, _, truncated, _ = env.step(key, state, action, params)
        return state, (reward, truncated)

    def episode(key):
        state = env.reset(key, params)[1]
        return jax.lax.scan(step, state, jax.random.split(key, 10_000))[1]

    keys = jax.random.split(jax.random.key(4), episodes)
    reward, truncated = jax.device_get(jax.jit(jax.vmap(episode))(keys))
    np.testing.assert_array_equal(truncated.sum(axis=1), 1)
    assert truncated[:, -1].all() and set(np.unique(reward)) == {0, 1}
    most = (10_000 - first) // cycle + 1
    if slip == 0:
        times = np.flatnonzero(reward[0]) + 1
        np.testing.assert_array_equal(times, first + cycle * np.arange(most))
    else:  # a failed move costs the step and at most one to undo it
        earned = reward.sum(axis=1)
        assert (earned >= 0.85 * most).all() and (earned < most).all()


@pytest.mark.slow
def test_the_button_places_cookies():
    """Equally often at each corner, whether there is one already or not; only on entering."""
    env, count = envs.HallwayCookie(slip=0.0), 4000
    keys = jax.random.split(jax.random.key(0), count)
    for cookie in (-1, 2):
        state = cookie_state(8, 12, cookie)
        step = jax.vmap(lambda key, s=state: env.step_env(key, s, 1, env.default_params)[1].cookie)
        counts = np.bincount(np.asarray(jax.jit(step)(keys)), minlength=4)
        assert (np.abs(counts - count / 4) < 5 * np.sqrt(count * 3 / 16)).all()
    step = stepper(env)
    # Right of the button is a wall: staying on it does not press it again.
    for seed in range(20):
        state = step(jax.random.key(seed), cookie_state(*BUTTON, 1), 1)[1]
        assert int(state.cookie) == 1
    _, state, reward, _, _ = step(jax.random.key(0), cookie_state(1, 2, 0), 3)
    assert (int(state.cookie), float(reward)) == (-1, 1.0)
    _, state, reward, _, _ = step(jax.random.key(0), cookie_state(1, 2, 1), 3)
    assert (int(state.cookie), float(reward)) == (1, 0.0)


NONE, BOTH = (False, False), (True, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "action", "after", "reward"),
    [
        # A locked door holds without a key, and opens with one, which it uses up.
        ((8, 8, (), False, BOTH), 1, (8, 8, (), False, BOTH), 0),
        ((8, 8, (), True, BOTH), 1, (8, 9, (), False, (False, True)), 0),
        ((8, 10, (), False, (False, True)), 1, (8, 10, (), False, (False, True)), 0),
        ((8, 10, (), True, (False, True)), 1, (8, 11, (), False, NONE), 0),
        ((8, 8, (), False, (False, True)), 1, (8, 9, (), False, (False, True)), 0),
        # One key at a time.
        ((1, 2, (0, 1), False, BOTH), 3, (1, 1, (1,), True, BOTH), 0),
        ((1, 2, (0, 1), True, BOTH), 3, (1, 1, (0, 1), True, BOTH), 0),
        ((15, 2, (3,), False, BOTH), 1, (15, 3, (), True, BOTH), 0),
        ((15, 2, (2,), False, BOTH), 1, (15, 3, (2,), False, BOTH), 0),
    ],
)
def test_keys_and_doors(before, action, after, reward):
    def state(row, column, keys, carries, locked):
        return keys_state(row, column, [k in keys for k in range(4)], carries, locked)

    env = _keys_without_slips()
    _, got, gain, terminated, _ = stepper(env)(jax.random.key(0), state(*before), action)
    expected = state(*after).replace(time=jnp.int32(1))
    jax.tree.map(np.testing.assert_array_equal, got, expected)
    assert float(gain) == reward and not terminated


@functools.cache
def _keys_without_slips():
    return envs.HallwayKeys(slip=0.0)


@pytest.mark.slow
def test_the_goal_begins_anew_in_the_same_episode():
    env = _keys_without_slips()
    before = keys_state(7, 13, 4 * [False], True, NONE, time=500)
    observation, state, reward, terminated, _ = stepper(env)(jax.random.key(3), before, 0)
    assert float(reward) == 1 and not terminated and int(state.time) == 501
    assert (int(state.row), int(state.column)) == START
    assert state.locked.all() and not state.carries and int(state.keys.sum()) == 2
    np.testing.assert_array_equal(observation[0], plane(START))
    # Locked doors keep the agent from it, even with a key in hand and none used.
    assert not env.is_terminated(state, env.default_params)


@pytest.mark.slow
def test_where_keys_lie():
    """Both north, both south or one each, equally often, before and after a goal."""
    env, count = _keys_without_slips(), 6000
    before = keys_state(7, 13, 4 * [False], False, NONE)
    keys = jax.random.split(jax.random.key(5), count)
    law = {(0, 1): 1 / 3, (2, 3): 1 / 3} | {(n, s): 1 / 12 for n in (0, 1) for s in (2, 3)}
    for draw in (
        lambda key: env.reset(key, env.default_params)[1].keys,
        lambda key: env.step_env(key, before, 0, env.default_params)[1].keys,
    ):
        lies = np.asarray(jax.jit(jax.vmap(draw))(keys))
        counts = collections.Counter(tuple(np.flatnonzero(row).tolist()) for row in lies)
        assert set(counts) == set(law)
        for places, p in law.items():
            assert abs(counts[places] - count * p) < 5 * np.sqrt(count * p * (1 - p))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slip": -0.1}, r"`slip` \(=-0\.1\) must be from 0 to 1\."),
        ({"layout": LAYOUT[1:]}, r"`layout` .* must have 17 rows of 15 cells\."),
        ({"layout": ("x" * 15, *LAYOUT[1:])}, r"`layout` .* must be made of `#` and digits\."),
        ({"layout": ("0" * 15, *LAYOUT[1:])}, r"`layout` .* must have walls around it\."),
        (
            {"layout": (*LAYOUT[:8], "#" * 15, *LAYOUT[9:])},
            r"`layout` .* must have no wall at \(8, 2\)\.",
        ),
    ],
)
@pytest.mark.parametrize("name", ["hallway_cookie", "hallway_keys"])
def test_values_that_break_a_rule(name, options, message):
    with pytest.raises(ValueError, match=message):
        envs.make(name, **options)


@pytest.mark.slow
def test_a_layout_of_ones_own():
    one_room = tuple(row.replace("1", "0").replace("2", "0").replace("3", "0") for row in LAYOUT)
    env, params = envs.make("hallway_cookie", layout=one_room)
    observation, _ = env.reset(jax.random.key(0), params)
    assert int(observation[1].sum()) == len(FLOOR)
