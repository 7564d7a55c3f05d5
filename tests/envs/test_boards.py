"""Battleship and MineSweeper: POPGym's package is the oracle, boards have its distribution."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from popgym.envs import battleship, minesweeper

from agents import envs
from agents.envs.popgym.boards.battleship import EnvState as BattleshipState
from agents.envs.popgym.boards.minesweeper import EnvState as MineSweeperState
from tests.envs.boards import (
    assert_distribution,
    assert_mean,
    assert_same_distribution,
    assert_same_episodes,
    packed,
    play_popgym,
    unpacked,
)

SEEDS = 60
FEW = 20  # of the levels that differ from another in their size only


def policies(targets, size, seed):
    """Actions: at random, with many repetitions, or all targets, with or without a detour."""
    rng = np.random.default_rng(seed)
    anywhere = rng.integers(size, size=(size**2, 2))
    targets = rng.permutation(targets)
    match seed % 4:
        case 0:
            actions = anywhere
        case 1:  # each twice
            actions = np.repeat(anywhere, 2, axis=0)
        case 2:
            actions = np.concatenate([targets, anywhere])
        case _:  # each target again, or another cell, before the next
            detour = np.where(rng.random(len(targets))[:, None] < 0.8, targets, anywhere[0])
            actions = np.stack([targets, detour], axis=1).reshape(-1, 2)
            actions = np.concatenate([actions, targets[:1].repeat(size**2, 0)])
    return lambda time: actions[time]


def battleship_states(boards):
    ships = jnp.asarray(packed(np.stack(boards)))
    return BattleshipState(jnp.zeros(len(boards), jnp.int32), ships, jnp.zeros_like(ships))


def minesweeper_states(boards):
    mines, count = jnp.asarray(packed(np.stack(boards))), len(boards)
    time, exploded = jnp.zeros(count, jnp.int32), jnp.zeros(count, bool)
    return MineSweeperState(time, mines, jnp.zeros_like(mines), exploded)


def _levels(family, theirs):
    module = {"Battleship": battleship, "MineSweeper": minesweeper}[family]
    for level in ("Easy", "Medium", "Hard"):
        mark = () if level == "Easy" else pytest.mark.slow
        yield pytest.param(f"{family}{level}", getattr(module, f"{family}{level}"), marks=mark)
    yield family, theirs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        *_levels("Battleship", battleship.Battleship),
        *_levels("MineSweeper", minesweeper.MineSweeper),
    ],
)
def test_same_as_popgym(name, oracle):
    env, params = envs.make(name)
    theirs = oracle()
    assert envs.episode_steps(env, params) == theirs.max_episode_length
    assert env.needs_previous_action == theirs.obs_requires_prev_action
    assert list(env.action_space(params).nvec) == list(theirs.action_space.nvec)
    assert env.observation_space(params).n == theirs.observation_space.n
    boards, played = [], []
    for seed in range(SEEDS if name.endswith("Easy") else FEW):
        assert theirs.reset(seed=seed)[0] == 0
        if name.startswith("Battleship"):
            board = theirs.board == 1
            targets = np.argwhere(board)
        else:
            board = theirs.hidden_grid == minesweeper.HiddenSquare.MINE
            targets = np.argwhere(~board)
        boards.append(board)
        played.append(play_popgym(theirs, policies(targets, env.board_size, seed)))
    states = battleship_states if name.startswith("Battleship") else minesweeper_states
    assert_same_episodes(env, params, states(boards), played)
    # All that can happen has happened, and going for the targets has the best return.
    terminated = np.array([episode.terminated[-1] for episode in played])
    assert terminated.any() and not terminated.all()
    returns = np.array([episode.reward.sum() for episode in played])
    np.testing.assert_allclose(returns[2::4], 1, rtol=1e-12)
    assert returns.max() < 1 + 1e-9 and (np.delete(returns, np.s_[2::4]) < 1 - 1e-3).all()
    kinds = 2 if name.startswith("Battleship") else 3
    assert len(np.unique(np.concatenate([episode.reward for episode in played]))) == kinds


@functools.partial(jax.jit, static_argnums=(0, 1))
def _resets(env, count):
    keys = jax.random.split(jax.random.key(5), count)
    return jax.vmap(env.reset, (0, None))(keys, env.default_params)


def resets(env, count):
    observation, state = jax.device_get(_resets(env, count))
    assert not observation.any() and not state.time.any()
    return state


def boards_of_ships(size, sizes):
    """The probability of every board, with ships placed one after the other, by enumeration."""
    boards = {frozenset(): 1.0}
    for length in sizes:
        places = []
        for y, x in itertools.product(range(size), repeat=2):
            for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):  # as POPGym: from an end, anywhere
                ship = frozenset((y + i * dy, x + i * dx) for i in range(length))
                if all(0 <= c < size for cell in ship for c in cell):
                    places.append(ship)
        following = {}
        for board, probability in boards.items():
            legal = [ship for ship in places if not ship & board]
            for ship in legal:
                new = board | ship
                following[new] = following.get(new, 0) + probability / len(legal)
        boards = following
    return boards


@pytest.mark.slow
@pytest.mark.parametrize(("size", "sizes"), [(3, (2, 1)), (4, (2, 3)), (4, (3, 2)), (3, (1, 3, 1))])
def test_ships_against_enumeration(size, sizes):
    state = resets(envs.Battleship(size, sizes), 100_000)
    assert not state.shots.any()
    boards = boards_of_ships(size, sizes)
    assert sum(boards.values()) == pytest.approx(1)
    keys = {
        sum(1 << (y * size + x) for y, x in board): probability
        for board, probability in boards.items()
    }
    found = (state.ships << (np.arange(size, dtype=np.uint32) * size)).sum(-1)
    kinds, count = np.unique(found, return_counts=True)
    counts = dict(zip(kinds.tolist(), count.tolist(), strict=True))
    assert counts.keys() <= keys.keys()
    assert_distribution([counts.get(key, 0) for key in keys], list(keys.values()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "level",
    ["Easy", "Medium", "Hard"],
)
def test_ships_against_popgym(level):
    """How often each cell is covered, and how many cells with a covered one to the right."""
    env, _ = envs.make(f"Battleship{level}")
    ours = unpacked(resets(env, 20_000).ships, env.board_size)
    oracle = getattr(battleship, f"Battleship{level}")()
    oracle.reset(seed=0)
    theirs = []
    for _ in range(2000):
        oracle.reset()
        theirs.append(oracle.board == 1)
    theirs = np.stack(theirs)
    assert (ours.sum((1, 2)) == 12).all() and (theirs.sum((1, 2)) == 12).all()
    p = ours.mean(0)
    error = np.sqrt(p * (1 - p) * (1 / len(ours) + 1 / len(theirs)))
    assert (np.abs(p - theirs.mean(0)) < 5 * error).all()
    beside = [(board[:, :, 1:] & board[:, :, :-1]).sum((1, 2)) for board in (ours, theirs)]
    assert_same_distribution(*(np.bincount(b, minlength=13) for b in beside))


@pytest.mark.slow
@pytest.mark.parametrize(("size", "mines"), [(3, 1), (3, 2), (3, 6), (4, 2)])
def test_every_set_of_mines_is_equally_likely(size, mines):
    state = resets(envs.MineSweeper(size, mines), 50_000)
    assert not state.viewed.any() and not state.exploded.any()
    found = (state.mines << (np.arange(size, dtype=np.uint32) * size)).sum(-1)
    sets = [sum(1 << c for c in cells) for cells in itertools.combinations(range(size**2), mines)]
    kinds, count = np.unique(found, return_counts=True)
    counts = dict(zip(kinds.tolist(), count.tolist(), strict=True))
    assert counts.keys() <= set(sets)
    assert_distribution([counts.get(s, 0) for s in sets], np.full(len(sets), 1 / len(sets)))


@pytest.mark.slow
@pytest.mark.parametrize("level", ["Easy", "Medium", "Hard"])
def test_mines_are_everywhere(level):
    env, _ = envs.make(f"MineSweeper{level}")
    mines = unpacked(resets(env, 50_000).mines, env.board_size)
    assert (mines.sum((1, 2)) == env.num_mines).all()
    p = env.num_mines / env.cells
    assert (np.abs(mines.mean(0) - p) < 5 * np.sqrt(p * (1 - p) / len(mines))).all()


@pytest.mark.slow
def test_the_largest_boards():
    """All bits of a word are columns."""
    sizes = (32, 16, 2, 1)
    ships = unpacked(resets(envs.Battleship(32, sizes), 2000).ships, 32)
    assert (ships.sum((1, 2)) == sum(sizes)).all()
    mines = unpacked(resets(envs.MineSweeper(32, 9), 2000).mines, 32)
    assert (mines.sum((1, 2)) == 9).all()
    assert ships.any(0)[:, [0, 31]].any(0).all() and mines.any(0)[:, [0, 31]].any(0).all()


@functools.partial(jax.jit, static_argnums=(0, 1))
def _random_returns(env, episodes):
    params = env.default_params

    def step(carry, key):
        state, total, done = carry
        key_action, key_step = jax.random.split(key)
        action = env.action_space(params).sample(key_action)
        _, state, reward, terminated, truncated, _ = env.step(key_step, state, action, params)
        total = jnp.where(done, total, total + reward)
        return (state, total, done | terminated | truncated), None

    def episode(key):
        key_reset, key_steps = jax.random.split(key)
        _, state = env.reset(key_reset, params)
        start = (state, jnp.float32(0), jnp.zeros((), bool))
        keys = jax.random.split(key_steps, params.max_steps_in_episode)
        return jax.lax.scan(step, start, keys)[0][1:]

    return jax.vmap(episode)(jax.random.split(jax.random.key(9), episodes))


def expected_battleship(size, parts):
    """Of uniform shots: the chain of the number of hits, by dynamic programming."""
    cells, value = size**2, np.zeros(parts + 1)
    for _ in range(cells):
        hit = np.arange(parts, 0, -1) / cells  # with 0 … parts - 1 hits so far
        new = np.zeros(parts + 1)
        new[:-1] = hit * (1 / parts + value[1:]) + (1 - hit) * (value[:-1] - 1 / (cells - parts))
        value = new
    return value[0]


def expected_minesweeper(size, mines):
    """Of uniform clicks: the chain of the number of viewed cells."""
    cells = size**2
    safe = cells - mines
    value = np.zeros(safe + 1)
    for _ in range(safe):
        viewed = np.arange(safe)
        new = np.zeros(safe + 1)
        new[:-1] = (
            mines * (-0.5 - 1 / safe)
            + viewed * (value[:-1] - 0.5 / (safe - 2))
            + (safe - viewed) * (1 / safe + value[1:])
        ) / cells
        value = new
    return value[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("BattleshipEasy", (expected_battleship, 8, 12)),
        ("MineSweeperEasy", (expected_minesweeper, 4, 2)),
        ("BattleshipHard", (expected_battleship, 12, 12)),
        ("MineSweeperHard", (expected_minesweeper, 8, 10)),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_random_return(name, expected):
    env, _ = envs.make(name)
    returns, done = jax.device_get(_random_returns(env, 8192))
    assert done.all()
    compute, *arguments = expected
    assert_mean(returns, compute(*arguments))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "Battleship",
            {"board_size": 33},
            r"`board_size` \(=33\) must be a whole number from 1 to 32\.",
        ),
        ("Battleship", {"ship_sizes": ()}, r"`ship_sizes` \(=\(\)\) must be at least one size"),
        ("Battleship", {"ship_sizes": (2, 11)}, r"one size from 1 to board_size \(=10\)\."),
        (
            "Battleship",
            {"board_size": 4, "ship_sizes": [2, 2, 4]},
            r"`ship_sizes` \(=\(2, 2, 4\)\) must leave room: .* n \* \(n // s\) cells",
        ),
        ("Battleship", {"board_size": 2, "ship_sizes": (1, 1, 1, 1)}, r"all less than n \*\* 2"),
        (
            "MineSweeper",
            {"board_size": 1},
            r"`board_size` \(=1\) must be a whole number from 2 to 32\.",
        ),
        ("MineSweeper", {"num_mines": 0}, r"`num_mines` \(=0\) must be at least 1 and less than"),
        ("MineSweeper", {"num_mines": 14}, r"board_size \*\* 2 - 2 \(=14\)\."),
    ],
)
def test_options_that_break_a_rule(name, options, message):
    with pytest.raises(ValueError, match=message):
        envs.make(name, **options)


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        (3, TypeError, r"`ship_sizes` \(=3\) must be a list"),
        (
            (2, 3.0),
            ValueError,
            r"`ship_sizes` \(=\(2, 3\.0\)\) must be a list, each of it a whole n",
        ),
    ],
)
def test_ship_sizes_of_the_wrong_kind(sizes, error, message):
    with pytest.raises(error, match=message):
        envs.make("Battleship", ship_sizes=sizes)
