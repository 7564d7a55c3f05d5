"""The Python package `minigrid` is the oracle: its grid and agent, the same actions."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minigrid.core.constants import OBJECT_TO_IDX
from minigrid.envs import MemoryEnv, RedBlueDoorEnv

from agents import envs
from agents.envs.remembering import minigrid as tiles
from agents.envs.remembering.minigrid_memory import EnvState as MemoryState
from agents.envs.remembering.red_blue_doors import EnvState as DoorsState


def memory_state(theirs):
    """Our state for a fresh `MemoryEnv`."""
    ours = {OBJECT_TO_IDX["key"]: tiles.KEY, OBJECT_TO_IDX["ball"]: tiles.BALL}
    middle, kinds = theirs.height // 2, theirs.grid.encode()[:, :, 0]
    x, y = theirs.agent_pos
    assert y == middle
    shown, upper = kinds[1, middle - 1], kinds[theirs.width - 2, middle - 2]
    fields = (0, x, y, theirs.agent_dir, ours[shown], ours[upper])
    return MemoryState(*map(np.int32, fields))


def doors_state(theirs):
    """Our state for a fresh `RedBlueDoorEnv`."""
    (red_y,), (blue_y,) = (
        [y for y in range(theirs.height) if theirs.grid.get(x, y) is door]
        for x, door in (
            (theirs.size // 2, theirs.red_door),
            (theirs.size // 2 + theirs.size - 1, theirs.blue_door),
        )
    )
    fields = (0, *theirs.agent_pos, theirs.agent_dir, red_y, blue_y)
    return DoorsState(*map(np.int32, fields), np.bool_(False), np.bool_(False))


@functools.partial(jax.jit, static_argnums=0)
def our_steps(env, params, states, actions):
    """Results of our steps, `[seed, time]`, and the first observations."""

    def step(state, action):
        _, state, reward, terminated, truncated, info = env.step(
            jax.random.key(0), state, action, params
        )
        return state, (info["final_observation"], reward, terminated, truncated)

    def episode(state, actions):
        return env.look(env.map(state), state), jax.lax.scan(step, state, actions)[1]

    return jax.vmap(episode)(states, actions)


# The weights of the actions: walking about; and opening doors, too.
WALK = (0.2, 0.2, 0.4, 0.05, 0.05, 0.05, 0.05)
TOGGLE = (0.15, 0.15, 0.4, 0.02, 0.02, 0.24, 0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "oracle", "arguments", "inject", "weights", "limit", "seeds"),
    [
        ("MemoryS7", {}, MemoryEnv, {"size": 7}, memory_state, WALK, 245, 200),
        ("MemoryS7", {"view": 5}, MemoryEnv, {"size": 7}, memory_state, WALK, 60, 20),
        ("RedBlueDoors-8x8", {}, RedBlueDoorEnv, {}, doors_state, TOGGLE, 150, 200),
        ("RedBlueDoors-8x8", {}, RedBlueDoorEnv, {}, doors_state, TOGGLE, 1280, 10),
        ("RedBlueDoors-8x8", {"view": 7}, RedBlueDoorEnv, {}, doors_state, TOGGLE, 100, 20),
    ],
)
def test_same_as_minigrid(name, options, oracle, arguments, inject, weights, limit, seeds):
    env, params = envs.make(name, **options)
    default = envs.episode_steps(env, params)
    theirs = oracle(agent_view_size=env.view, **arguments)
    assert (theirs.max_steps, theirs.action_space.n) == (default, env.num_actions)
    theirs.max_steps = limit
    params = params.replace(max_steps_in_episode=limit)
    actions = np.random.default_rng(5).choice(7, (seeds, limit), p=weights).astype(np.int32)
    records, states = [], []
    for seed in range(seeds):
        first, _ = theirs.reset(seed=seed)
        states.append(inject(theirs))
        steps = []
        for action in actions[seed].tolist():
            observation, reward, terminated, truncated, _ = theirs.step(action)
            steps.append((observation["image"].ravel(), reward, terminated, truncated))
            if terminated or truncated:
                break
        records.append((first["image"].ravel(), steps))
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    ours = jax.device_get(our_steps(env, params, states, actions))
    rewards = set()
    for seed, (first, steps) in enumerate(records):
        np.testing.assert_array_equal(ours[0][seed], first)
        observation, reward, terminated, truncated = (x[seed, : len(steps)] for x in ours[1])
        expected = [np.array(x) for x in zip(*steps, strict=True)]
        np.testing.assert_array_equal(observation, expected[0])
        np.testing.assert_allclose(reward, expected[1], atol=1e-6, rtol=0)
        np.testing.assert_array_equal(terminated, expected[2])
        np.testing.assert_array_equal(truncated, expected[3])
        rewards.add((bool(terminated[-1]), bool(reward[-1] > 0)))
    if seeds >= 200:  # timeouts, wrong ends and right ones, so that confusing them would be noticed
        assert rewards == {(False, False), (True, False), (True, True)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "oracle", "inject"),
    [("MemoryS7", MemoryEnv, memory_state), ("RedBlueDoors-8x8", RedBlueDoorEnv, doors_state)],
)
def test_first_states_are_uniform(name, oracle, inject):
    env, params = envs.make(name)
    count = 8192
    keys = jax.random.split(jax.random.key(3), count)
    state = jax.device_get(jax.jit(jax.vmap(lambda key: env.reset(key, params)[1]))(keys))
    theirs = oracle(**({"size": 7} if name == "MemoryS7" else {}))
    injected = []
    for seed in range(300):
        theirs.reset(seed=seed)
        injected.append(inject(theirs))
    fields = {f: np.array([getattr(s, f) for s in injected]) for f in vars(state)}
    values = {f: np.unique(getattr(state, f)) for f in fields}
    for field, expected in fields.items():
        np.testing.assert_array_equal(values[field], np.unique(expected))

    def check(counts):
        """Within five standard deviations of equal counts."""
        p = 1 / len(counts)
        assert (np.abs(counts - count * p) < 5 * np.sqrt(count * p * (1 - p))).all()

    for a, b in itertools.combinations([f for f in fields if len(values[f]) > 1], 2):
        pairs = np.stack([getattr(state, a), getattr(state, b)], 1)
        found, counts = np.unique(pairs, axis=0, return_counts=True)
        assert len(found) == len(values[a]) * len(values[b])
        check(counts)


def turns(direction, wanted):
    """The fewest turns."""
    return {0: [], 1: [tiles.RIGHT], 2: 2 * [tiles.RIGHT], 3: [tiles.LEFT]}[
        (wanted - direction) % 4
    ]


def route(x, y, direction, target_x, target_y, final):
    """Actions to a cell, along the row first, and then a look in a direction."""
    actions = []
    for distance, ways in ((target_x - x, (0, 2)), (target_y - y, (1, 3))):
        if distance:
            wanted = ways[distance < 0]
            actions += turns(direction, wanted) + abs(distance) * [tiles.FORWARD]
            direction = wanted
    return actions + turns(direction, final)


def best_memory(s):
    up = s.shown == s.upper
    return (5 - s.x) * [tiles.FORWARD] + turns(0, 3 if up else 1) + [tiles.FORWARD]


def best_doors(s):
    to_red = route(s.x, s.y, s.direction, 5, s.red_y, 2)
    to_blue = route(5, s.red_y, 2, 10, s.blue_y, 0)
    return [*to_red, tiles.TOGGLE, *to_blue, tiles.TOGGLE]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "best"),
    [("MemoryS7", best_memory), ("RedBlueDoors-8x8", best_doors)],
)
def test_an_oracle_gets_the_reward(name, best):
    env, params = envs.make(name)
    keys = jax.random.split(jax.random.key(11), 50)
    states = jax.device_get(jax.jit(jax.vmap(lambda key: env.reset(key, params)[1]))(keys))
    plans = [best(jax.tree.map(lambda x, i=i: x[i].item(), states)) for i in range(len(keys))]
    longest = max(map(len, plans))
    actions = np.array([plan + (longest - len(plan)) * [tiles.DONE] for plan in plans], np.int32)
    _, (_, reward, terminated, _) = jax.device_get(our_steps(env, params, states, actions))
    for i, plan in enumerate(plans):
        last = len(plan) - 1
        assert terminated[i, last] and not terminated[i, :last].any()
        expected = 1 - 0.9 * len(plan) / params.max_steps_in_episode
        np.testing.assert_allclose(reward[i, last], expected, atol=1e-6)
        assert not reward[i, :last].any()


def by_loop(clear):
    """MiniGrid's own order: row by row, in each to the right and to the left."""
    side = len(clear)
    seen = np.zeros((side, side), bool)
    seen[side // 2, side - 1] = True
    for row in reversed(range(side)):
        for columns, to in ((range(side - 1), 1), (range(side - 1, 0, -1), -1)):
            for column in columns:
                if seen[column, row] and clear[column, row]:
                    seen[column + to, row] = True
                    if row:
                        seen[[column, column + to], row - 1] = True
    return seen


@pytest.mark.quick_rows(2)
@pytest.mark.parametrize("side", [3, 7, 15, 31])
def test_sight_spreads_as_in_the_loop(side):
    rng = np.random.default_rng(side)
    share = rng.uniform(0.4, 1, size=(200, 1, 1))
    clear = rng.random((200, side, side)) < share
    found = jax.jit(jax.vmap(tiles._visible))(jnp.asarray(clear))
    np.testing.assert_array_equal(found, [by_loop(view) for view in clear])
    assert 0.1 < found.mean() < 0.9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: envs.MiniGridMemory(view=4),
            r"`view` \(=4\) must be odd and at least 3, at most 31\.",
        ),
        (lambda: envs.MiniGridMemory(size=6), r"`size` \(=6\) must be odd and at least 7\."),
        (lambda: envs.RedBlueDoors(size=7), r"`size` \(=7\) must be even and at least 4\."),
        (
            lambda: envs.RedBlueDoors(view=1),
            r"`view` \(=1\) must be odd and at least 3, at most 31\.",
        ),
    ],
)
def test_values_that_break_a_rule(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.slow
def test_a_view_is_a_multidiscrete_vector():
    env, params = envs.make("MemoryS7")
    assert env.observation_space(params).nvec == 9 * (11, 6, 3)
    assert jax.eval_shape(env.reset, jax.random.key(0))[0].dtype == jnp.int32
