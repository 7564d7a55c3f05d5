"""The labyrinths: POPGym's package is the oracle, mazes have the distribution of `mazelib`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from popgym.envs import labyrinth_escape, labyrinth_explore

from agents import envs
from agents.envs.popgym.boards.labyrinth import NO_ACTION
from agents.envs.popgym.boards.labyrinth_escape import EnvState as EscapeState
from agents.envs.popgym.boards.labyrinth_explore import EnvState as ExploreState
from tests.envs.boards import (
    WAYS,
    assert_mean,
    assert_same_episodes,
    distances,
    packed,
    play_popgym,
    unpacked,
)

SEEDS = 60
FEW = 20  # of the levels that differ from another in their size only
LIMIT = 1024
BACK = (1, 0, 3, 2)

levels = pytest.mark.parametrize(
    "level",
    ["Easy", *(pytest.param(level, marks=pytest.mark.slow) for level in ("Medium", "Hard"))],
)


def make_oracle(family, level):
    module = {"LabyrinthEscape": labyrinth_escape, "LabyrinthExplore": labyrinth_explore}[family]
    with pytest.warns(DeprecationWarning, match="solvable without the use of memory"):
        return getattr(module, f"{family}{level}")()


def way_out(is_open, start, goal):
    """The actions of the shortest way, empty if there is none."""
    to_go, (y, x), actions = distances(is_open, goal), start, []
    inside = lambda y, x: min(y, x) >= 0 and max(y, x) < len(is_open)  # noqa: E731
    while to_go[start] > 0 and to_go[y, x] > 0:
        actions.append(
            next(
                action
                for action, (dy, dx) in enumerate(WAYS)
                if inside(y + dy, x + dx) and to_go[y + dy, x + dx] == to_go[y, x] - 1
            )
        )
        y, x = y + WAYS[actions[-1]][0], x + WAYS[actions[-1]][1]
    return actions


def tour(is_open, start):
    """The actions of the shortest tour of a maze without circles: the deepest branch comes last."""

    def visit(cell, came_from):
        """Of a branch: its depth, the tour that ends in its deepest cell, and the round trip."""
        branches = []
        for action, (dy, dx) in enumerate(WAYS):
            new = cell[0] + dy, cell[1] + dx
            inside = min(new) >= 0 and max(new) < len(is_open)
            if inside and is_open[new] and new != came_from:
                depth, ends_there, returns = visit(new, cell)
                branches.append(
                    (depth + 1, [action, *ends_there], [action, *returns, BACK[action]])
                )
        branches.sort(key=lambda branch: branch[0])
        around = [action for _, _, returns in branches for action in returns]
        if not branches:
            return 0, [], []
        before = [action for _, _, returns in branches[:-1] for action in returns]
        return branches[-1][0], before + branches[-1][1], around

    return visit(start, None)[1]


def with_detours(actions, is_open, start, rng):
    """The same way, with steps that are taken back and steps into walls."""
    (y, x), walked = start, []
    for action in actions:
        while rng.random() < 0.3:
            aside = int(rng.integers(4))
            dy, dx = WAYS[aside]
            new = y + dy, x + dx
            inside = min(new) >= 0 and max(new) < len(is_open)
            walked.append(aside)
            if inside and is_open[new]:
                walked.append(BACK[aside])
        walked.append(action)
        y, x = y + WAYS[action][0], x + WAYS[action][1]
    return walked


def states_of(family, mazes):
    """Our states at the beginning in POPGym's mazes: `(grid, start, end)`."""
    grids, starts, ends = (np.array(x) for x in zip(*mazes, strict=True))
    start, end = jnp.asarray(starts, jnp.int32), jnp.asarray(ends, jnp.int32)
    time, cells = jnp.zeros(len(grids), jnp.int32), jnp.asarray(packed(grids != 1))
    if family == "LabyrinthEscape":
        return EscapeState(time, cells, start, start, end)
    explored = np.zeros(grids.shape, bool)
    explored[np.arange(len(grids)), *starts.T] = True
    return ExploreState(time, cells, jnp.asarray(packed(explored)), start, start)


@pytest.mark.slow
@levels
@pytest.mark.parametrize("family", ["LabyrinthEscape", "LabyrinthExplore"])
def test_same_as_popgym(family, level):
    escape = family == "LabyrinthEscape"
    env, params = envs.make(f"{family}{level}")
    oracle = make_oracle(family, level)
    assert envs.episode_steps(env, params) == oracle.max_episode_length - 1
    assert env.action_space(params).n == oracle.action_space.n
    assert list(env.observation_space(params).nvec) == list(oracle.observation_space.nvec)
    mazes, first, played, returns, best, shortest, can = ([] for _ in range(7))
    for seed in range(SEEDS if level == "Easy" else FEW):
        observation, _ = oracle.reset(seed=seed)
        rng = np.random.default_rng(seed)
        grid, start = oracle.maze.grid.copy(), oracle.maze.start
        is_open = grid != 1
        end = oracle.maze.end
        route = way_out(is_open, start, end) if escape else tour(is_open, start)
        if seed % 5 == 4:
            route = []
        elif seed % 2:
            route = with_detours(route, is_open, start, rng)
        shortest.append(seed % 5 < 4 and seed % 2 == 0)
        actions = [*route, *rng.integers(4, size=LIMIT).tolist()]
        mazes.append((grid, start, end))
        first.append(observation)
        played.append(play_popgym(oracle, actions.__getitem__))
        returns.append(played[-1].reward.sum())
        steps = distances(is_open, start)
        can.append(not escape or steps[end] >= 0)
        back = steps[end] if escape else is_open.sum() - 1 - steps.max()
        best.append(1 - back / LIMIT)
    states = states_of(family, mazes)
    view = jax.jit(jax.vmap(lambda s: env.view(s, NO_ACTION, s.goal if escape else None)))
    np.testing.assert_array_equal(view(states), first)
    assert_same_episodes(env, params, states, played)
    # All that can happen has happened, and the shortest way has the best return.
    returns, best, shortest, can = map(np.array, (returns, best, shortest, can))
    np.testing.assert_allclose(returns[shortest & can], best[shortest & can], rtol=1e-9)
    assert (returns <= best + 1e-9)[can].all() and (returns < best - 1e-9)[~shortest].mean() > 0.9
    assert can.mean() > 0.9
    assert any(episode.truncated[-1] for episode in played)
    assert any(episode.terminated[-1] for episode in played)


@pytest.mark.slow
def test_random_return_in_a_known_maze():
    """The chain of positions of the uniform policy, by dynamic programming."""
    env, params = envs.make("LabyrinthEscapeEasy")
    _, state = env.reset(jax.random.key(3), params)
    cells = unpacked(state.open, env.size + 1)
    start, end = state.start.tolist(), state.goal.tolist()
    places = [tuple(cell) for cell in np.argwhere(cells).tolist()]
    goal = places.index(tuple(end))
    chain = np.zeros((len(places), len(places)))
    for i, (y, x) in enumerate(places):
        for dy, dx in WAYS:
            new = y + dy, x + dx
            chain[i, places.index(new) if new in places else i] += 1 / 4
    value = np.zeros(len(places))
    for _ in range(LIMIT - 1):
        value = chain @ np.where(np.arange(len(places)) == goal, 1, value) - 1 / LIMIT
    expected = value[places.index(tuple(start))]

    @jax.jit
    def returns(key):
        def step(carry, key):
            state, total, done = carry
            action = jax.random.randint(key, (), 0, 4, jnp.int32)
            _, state, reward, terminated, _ = env.step_env(key, state, action, params)
            return (state, jnp.where(done, total, total + reward), done | terminated), None

        def episode(key):
            start = (state, jnp.float32(0), jnp.zeros((), bool))
            keys = jax.random.split(key, LIMIT - 1)
            return jax.lax.scan(step, start, keys)[0][1]

        return jax.vmap(episode)(jax.random.split(key, 4096))

    assert_mean(returns(jax.random.key(8)), expected)


@pytest.mark.parametrize("family", ["LabyrinthEscape", "LabyrinthExplore"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 9}, r"`size` \(=9\) must be even, and from 6 to 30\."),
        ({"size": 4}, r"`size` \(=4\) must be even, and from 6 to 30\."),
        ({"size": 32}, r"`size` \(=32\) must be even, and from 6 to 30\."),
        ({"episode_length": 1}, r"`episode_length` \(=1\) must be a whole number of at least 2\."),
    ],
)
def test_options_that_break_a_rule(family, options, message):
    with pytest.raises(ValueError, match=message):
        envs.make(family, **options)
