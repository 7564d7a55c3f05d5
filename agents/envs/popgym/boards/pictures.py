"""Pictures of boards and labyrinths."""

from typing import Any

import numpy as np

from ...rendering.canvas import (
    GRAY,
    GREEN,
    INK,
    PALE,
    PAPER,
    RED,
    WALL,
    WATER,
    Canvas,
    Color,
    faint,
)
from ...rendering.frame import draw, title
from .battleship import Battleship
from .labyrinth import Labyrinth
from .minesweeper import MineSweeper


def _cells(words: Any, columns: int) -> np.ndarray:
    """A set of cells as an array of Booleans, from rows of bits."""
    bits = np.asarray(words, np.uint32)[:, None] >> np.arange(columns, dtype=np.uint32)
    return (bits & 1).astype(bool)


@draw.register(Battleship)
def _battleship(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    n = env.board_size
    ships, shots = _cells(state.ships, n), _cells(state.shots, n)
    hits = int((ships & shots).sum())
    canvas = Canvas(n, n, scale, title(env, state, f"{hits} of {env.parts} hit"))
    for row, column in np.ndindex(n, n):
        canvas.box(column, row, 1, 1, WATER, PAPER, 0.04)
        ship, shot = ships[row, column], shots[row, column]
        if ship:
            canvas.box(column + 0.08, row + 0.08, 0.84, 0.84, RED if shot else (182, 192, 202))
        elif shot:
            canvas.disc(column + 0.5, row + 0.5, 0.18, INK)
    return canvas.pixels()


@draw.register(MineSweeper)
def _minesweeper(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    n = env.board_size
    mines, viewed = _cells(state.mines, n), _cells(state.viewed, n)
    padded = np.pad(mines, 1).astype(int)
    near = np.sum([padded[y : y + n, x : x + n] for y, x in np.ndindex(3, 3)], axis=0)
    exploded = bool(state.exploded)
    words = "exploded" if exploded else f"{int(viewed.sum())} of {env.safe_cells} cells"
    canvas = Canvas(n, n, scale, title(env, state, words))
    for row, column in np.ndindex(n, n):
        open_ = viewed[row, column]
        canvas.box(column, row, 1, 1, PAPER if open_ else PALE, GRAY, 0.04)
        middle = (column + 0.5, row + 0.5)
        if mines[row, column]:
            canvas.disc(*middle, 0.28, RED if exploded else faint(INK, 0.4))
        else:
            color = INK if open_ else (198, 200, 204)
            canvas.text(*middle, str(near[row, column]), color, 0.6 if open_ else 0.4)
    return canvas.pixels()


@draw.register(Labyrinth)
def _labyrinth(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    n = env.size + 1
    free = _cells(state.open, n)
    y, x = (int(place) for place in state.position)
    explored = getattr(state, "explored", None)
    visited = np.zeros((n, n), bool) if explored is None else _cells(explored, n)
    words = "" if explored is None else f"{int(visited.sum())} of {int(free.sum())} cells"
    canvas = Canvas(n, n, scale, title(env, state, words))
    for row, column in np.ndindex(n, n):
        color = faint(GREEN, 0.35) if visited[row, column] else PAPER
        color = color if free[row, column] else WALL
        near = max(abs(row - y), abs(column - x)) <= 1
        canvas.box(column, row, 1, 1, color if near else _dimmed(color))
    marks = [("S", state.start, INK)]
    marks += [("G", state.goal, GREEN)] if explored is None else []
    for letter, place, color in marks:
        row, column = (int(number) for number in place)
        canvas.text(column + 0.5, row + 0.5, letter, color, 0.8)
    canvas.agent(y, x)
    return canvas.pixels()


def _dimmed(color: Color) -> Color:
    """The color of a cell that is out of sight."""
    red, green, blue = (round(0.8 * c + 0.2 * 160) for c in color)
    return red, green, blue
