"""The mazes by themselves: they are trees, and have the distribution of `mazelib`'s."""

import functools
import random

import jax
import numpy as np
import pytest
from mazelib.generate.HuntAndKill import HuntAndKill
from popgym.core.maze import Maze as PopgymMaze

from agents.envs.popgym.boards.maze import generate
from tests.envs.boards import (
    assert_distribution,
    assert_same_distribution,
    distances,
    unpacked,
)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _mazes(size, count, draws):
    keys = jax.random.split(jax.random.key(3), count)
    return jax.vmap(lambda key: generate(key, size, draws))(keys)


class FewDraws(HuntAndKill):
    """`mazelib`'s algorithm, stopped after fewer draws than it has cells."""

    def __init__(self, size, draws):
        super().__init__(size // 2, size // 2)
        self.draws = draws

    def _hunt_random(self, grid, count):
        return super()._hunt_random(grid, count + (self.H * self.W - self.draws))


@functools.cache
def mazes(size, count, draws=None):
    """Ours: cells that are open `[maze, row, column]`, starts and ends."""
    maze = jax.device_get(_mazes(size, count, draws))
    return unpacked(maze.open, size + 1), maze.start, maze.end


@functools.cache
def popgym_mazes(size, count, draws=None):
    """As `mazes`, of the package."""
    random.seed(size)
    np.random.seed(size)
    found = []
    for _ in range(count):
        maze = PopgymMaze()
        maze.generator = FewDraws(size, (size + 1) ** 2 if draws is None else draws)
        maze.generate()
        maze.generate_entrances(start_outer=True)
        found.append((maze.grid == 0, maze.start, maze.end))
    return tuple(np.array(x) for x in zip(*found, strict=True))


def rooms_and_passages(is_open):
    """How many of each: cells in odd rows and columns, and cells between two of them."""
    rooms = is_open[:, 1::2, 1::2]
    return rooms.sum((1, 2)), is_open[:, 1::2, 2:-1:2].sum((1, 2)) + is_open[:, 2:-1:2, 1::2].sum(
        (1, 2)
    )


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("size", [6, 10, 18, 30])
def test_mazes_are_trees(size):
    is_open, *_ = mazes(size, 2000)
    rooms, passages = rooms_and_passages(is_open)
    np.testing.assert_array_equal(passages, rooms - 1)
    np.testing.assert_array_equal(is_open.sum((1, 2)), rooms + passages)
    assert np.mean(rooms == (size // 2) ** 2) > 0.9
    for maze in is_open[:100]:  # and connected
        origin = tuple(np.argwhere(maze)[0])
        assert (distances(maze, origin)[maze] >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("size", [6, 10])
def test_entrances(size):
    _, start, end = mazes(size, 50_000)
    rooms = size // 2
    np.testing.assert_array_equal(np.sort(np.abs(start - end), -1)[:, 1], size)
    # Side and both places: which wall the start is in, and where along the walls both are.
    vertical = start[:, 0] % size == 0
    side = 2 * vertical + (np.where(vertical, start[:, 0], start[:, 1]) == 0)
    first, second = (np.where(vertical, x[:, 1], x[:, 0]) // 2 for x in (start, end))
    kind = (side * rooms + first) * rooms + second
    kinds = 4 * rooms**2
    assert_distribution(np.bincount(kind, minlength=kinds), np.full(kinds, 1 / kinds))


@pytest.mark.slow
@pytest.mark.parametrize("draws", [None, 5])
def test_every_maze_is_as_frequent_as_in_mazelib(draws):
    """Of nine rooms; with few draws many lack some."""
    ours, theirs = mazes(6, 100_000, draws)[0], popgym_mazes(6, 20_000, draws)[0]
    incomplete = [np.bincount(rooms_and_passages(x)[0] < 9, minlength=2) for x in (ours, theirs)]
    if draws is None:
        assert max(count[1] for count in incomplete) < 10
    else:
        assert min(count[1] / sum(count) for count in incomplete) > 0.1
        assert_same_distribution(*incomplete)
    counts = []
    for cells in (ours, theirs):
        code = cells.reshape(len(cells), -1) @ (1 << np.arange(49))
        kinds, count = np.unique(code, return_counts=True)
        counts.append(dict(zip(kinds.tolist(), count.tolist(), strict=True)))
    kinds = sorted(counts[0].keys() | counts[1].keys())
    assert len(kinds) > 100
    assert_same_distribution(*([c.get(kind, 0) for kind in kinds] for c in counts))


def dead_ends(is_open):
    """How many open cells have one open neighbor."""
    around = np.pad(is_open, ((0, 0), (1, 1), (1, 1))).astype(int)
    neighbors = (
        around[:, :-2, 1:-1] + around[:, 2:, 1:-1] + around[:, 1:-1, :-2] + around[:, 1:-1, 2:]
    )
    return (is_open & (neighbors == 1)).sum((1, 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "count"),
    [(10, 1500), (18, 700)],
)
def test_mazes_are_like_those_of_mazelib(size, count):
    ours, theirs = mazes(size, 20_000), popgym_mazes(size, count)
    for statistic in (
        dead_ends,
        lambda x: rooms_and_passages(x)[0],
        # Passages along a line: what a wrong order of the four ways would shift.
        lambda x: x[:, 1, 2:-1:2].sum(1),
        lambda x: x[:, 2:-1:2, 1].sum(1),
        lambda x: x[:, size - 1, 2:-1:2].sum(1),
    ):
        values = [statistic(x[0]) for x in (ours, theirs)]
        length = max(v.max() for v in values) + 1
        if len(np.unique(np.concatenate(values))) > 1:
            assert_same_distribution(*(np.bincount(v, minlength=length) for v in values))
    means = []
    for is_open, start, end in (ours, theirs):
        way = []
        for cells, *ends in zip(is_open[:count], start, end, strict=False):
            doors = cells.copy()
            doors[tuple(np.array(ends).T)] = True
            way.append(distances(doors, tuple(ends[0]))[tuple(ends[1])])
        means.append(np.array(way))
    spread = np.sqrt(sum(w.var() / len(w) for w in means))
    assert abs(means[0].mean() - means[1].mean()) < 5 * spread
