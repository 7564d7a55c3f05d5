"""Pictures of recall, of rooms and of external memories."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces

from ..rendering.canvas import (
    BLUE,
    GRAY,
    GREEN,
    INK,
    ORANGE,
    PALE,
    PAPER,
    RED,
    WALL,
    Canvas,
    Color,
    Number,
    faint,
)
from ..rendering.frame import draw, title
from . import minigrid
from .action_sequence import ActionSequence
from .external_memory import ExternalMemory
from .gravity import Gravity
from .hallway import CORNERS, HEIGHT, WIDTH
from .hallway_cookie import BUTTON, HallwayCookie
from .hallway_keys import DOORS, GOAL, HallwayKeys
from .minigrid import MiniGrid

_COOKIE: Color = (158, 106, 56)
_MOST_NUMBERS = 40  # of a slot


def _cookie(canvas: Canvas, row: Number, column: Number, hidden: bool = False) -> None:
    x, y = column + 0.5, row + 0.5
    canvas.disc(x, y, 0.36, faint(_COOKIE) if hidden else _COOKIE)
    for dx, dy in ((-0.12, -0.1), (0.13, -0.05), (0, 0.15)):
        canvas.disc(x + dx, y + dy, 0.06, PAPER)


def _button(canvas: Canvas, row: Number, column: Number, hidden: bool = False) -> None:
    canvas.box(column + 0.2, row + 0.2, 0.6, 0.6, faint(RED) if hidden else RED)


def _key(canvas: Canvas, x: Number, y: Number, color: Color) -> None:
    """A key around the middle of a cell."""
    canvas.disc(x - 0.2, y, 0.16, None, color)
    canvas.line([(x - 0.04, y), (x + 0.36, y)], color)
    canvas.line([(x + 0.3, y), (x + 0.3, y + 0.18)], color)


@draw.register(Gravity)
def _gravity(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    force = bool(state.force)
    canvas = Canvas(env.columns + 2, env.rows + 0.4, scale, title(env, state))
    for row, column in np.ndindex(env.rows, env.columns):
        color = WALL if (row, column) in env.walls else PAPER
        canvas.box(column + 0.2, row + 0.2, 1, 1, color, GRAY, 0.04)
    _cookie(canvas, env.cookie[0] + 0.2, env.cookie[1] + 0.2)
    _button(canvas, env.button[0] + 0.2, env.button[1] + 0.2)
    canvas.agent(int(state.row) + 0.2, int(state.column) + 0.2)
    # The force is not seen: a faint arrow beside the grid while it is on.
    x, top, bottom = env.columns + 1.1, 0.4, env.rows
    color = faint(INK, 0.5)
    if force:
        canvas.line([(x, top), (x, bottom - 0.3)], color, 0.16)
        canvas.polygon([(x - 0.4, bottom - 0.5), (x + 0.4, bottom - 0.5), (x, bottom)], color)
    else:
        canvas.text(x, (top + bottom) / 2, "off", color, 0.6)
    return canvas.pixels()


def _hallway(env: Any, state: Any, scale: int, words: str = "") -> tuple[Canvas, Any]:
    """The map with the agent's room lit, and which cells are in it."""
    seen = env.rooms == env.rooms[int(state.row), int(state.column)]
    canvas = Canvas(WIDTH, HEIGHT, scale, title(env, state, words))
    for row, column in np.ndindex(HEIGHT, WIDTH):
        color = WALL if env.rooms[row, column] < 0 else PAPER if seen[row, column] else PALE
        canvas.box(column, row, 1, 1, color, faint(GRAY) if color != WALL else None, 0.04)
    return canvas, seen


@draw.register(HallwayCookie)
def _hallway_cookie(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    canvas, seen = _hallway(env, state, scale)
    _button(canvas, *BUTTON, hidden=not seen[BUTTON])
    if int(state.cookie) >= 0:
        place = CORNERS[int(state.cookie)]
        _cookie(canvas, *place, hidden=not seen[place])
    canvas.agent(int(state.row), int(state.column))
    return canvas.pixels()


@draw.register(HallwayKeys)
def _hallway_keys(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    canvas, seen = _hallway(env, state, scale)
    row, column = int(state.row), int(state.column)
    for place, locked in zip(DOORS, np.asarray(state.locked), strict=True):
        y, x = place
        color = ORANGE if seen[place] else faint(ORANGE)
        canvas.box(x + 0.05, y + 0.05, 0.9, 0.9, color if locked else None, color, 0.1)
    color = GREEN if seen[GOAL] else faint(GREEN)
    canvas.box(GOAL[1] + 0.1, GOAL[0] + 0.1, 0.8, 0.8, color)
    for place, present in zip(CORNERS, np.asarray(state.keys), strict=True):
        if present:
            color = INK if seen[place] else faint(INK)
            _key(canvas, place[1] + 0.5, place[0] + 0.5, color)
    canvas.agent(row, column)
    if bool(state.carries):  # which is not seen
        _key(canvas, column + 0.5, row + 0.5, PAPER)
    return canvas.pixels()


@draw.register(MiniGrid)
def _minigrid(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    tiles = np.asarray(env.map(jax.tree.map(jnp.asarray, state)))
    height, width = tiles.shape
    x, y, direction = int(state.x), int(state.y), int(state.direction)
    ahead = ((1, 0), (0, 1), (-1, 0), (0, -1))[direction]
    half = env.view // 2
    middle_x, middle_y = x + half * ahead[0], y + half * ahead[1]
    canvas = Canvas(width, height, scale, title(env, state))
    for row, column in np.ndindex(height, width):
        seen = max(abs(row - middle_y), abs(column - middle_x)) <= half
        _tile(canvas, row, column, int(tiles[row, column]), seen)
    left, top = max(middle_x - half, 0), max(middle_y - half, 0)
    right, bottom = min(middle_x + half + 1, width), min(middle_y + half + 1, height)
    canvas.box(left, top, right - left, bottom - top, line=ORANGE, thickness=0.08)
    forward, side = np.array(ahead), np.array((-ahead[1], ahead[0]))
    center = np.array((x + 0.5, y + 0.5))
    corners = (0.38 * forward, -0.3 * forward + 0.3 * side, -0.3 * forward - 0.3 * side)
    canvas.polygon([tuple(center + corner) for corner in corners], BLUE)
    return canvas.pixels()


def _tile(canvas: Canvas, row: int, column: int, tile: int, seen: bool) -> None:
    floor = PAPER if seen else PALE
    canvas.box(column, row, 1, 1, WALL if tile == minigrid.WALL else floor, faint(GRAY), 0.04)
    doors = {
        minigrid.RED_CLOSED: (RED, True),
        minigrid.RED_OPEN: (RED, False),
        minigrid.BLUE_CLOSED: (BLUE, True),
        minigrid.BLUE_OPEN: (BLUE, False),
    }
    if tile in doors:
        color, closed = doors[tile]
        color = color if seen else faint(color, 0.5)
        canvas.box(column + 0.05, row + 0.05, 0.9, 0.9, color if closed else None, color, 0.15)
    color = GREEN if seen else faint(GREEN, 0.5)
    if tile == minigrid.BALL:
        canvas.disc(column + 0.5, row + 0.5, 0.32, color)
    elif tile == minigrid.KEY:
        _key(canvas, column + 0.5, row + 0.5, color)


@draw.register(ActionSequence)
def _sequence(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    time, prefix = int(state.time), int(state.prefix)
    taken = [(prefix // env.num_actions ** (time - 1 - i)) % env.num_actions for i in range(time)]
    best = np.unravel_index(int(np.argmax(env.rewards)), env.rewards.shape)
    canvas = Canvas(max(9, 2 * env.steps + 1), 5.6, scale, title(env, state))
    canvas.text(0.5, 0.3, "actions", GRAY, 0.5, "l")
    for step in range(env.steps):
        x = 0.5 + 2 * step
        now = step == time
        canvas.box(x, 0.8, 1.7, 1.7, PAPER, ORANGE if now else GRAY, 0.12 if now else 0.05)
        if step < time:
            canvas.text(x + 0.85, 1.65, str(taken[step]), INK, 1.0)
    order = " ".join(str(int(action)) for action in best)
    gray = (178, 181, 187)
    canvas.text(0.5, 3.2, f"best: {order}, reward {env.rewards.max():g}", gray, 0.55, "l")
    if time == env.steps:
        canvas.text(0.5, 4.2, f"reward {env.rewards[tuple(taken)]:g}", INK, 0.6, "l")
    return canvas.pixels()


@draw.register(ExternalMemory)
def _memory(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    space = env.env.observation_space(params)
    seen = np.asarray(state.observation)
    above = draw(env.env, params, state.env_state, seen.reshape(space.shape), scale)
    height, width = (size / scale for size in above.shape[:2])
    memory = np.asarray(state.memory)
    slots = memory[:, None] if memory.ndim == 1 else memory
    shown = min(slots.shape[1], _MOST_NUMBERS) if len(slots) else 0
    part = 0 < shown < slots.shape[1]
    canvas = Canvas(
        max(width, shown + 1, len(slots) + 1),
        height + 1.4 * max(1, len(slots)) + (1.4 if part else 0.8),
        scale,
        title(env, state),
    )
    canvas.paste(above, 0, 0)
    canvas.line([(0, height + 0.2), (canvas.width, height + 0.2)], GRAY, 0.05)
    top = height + 0.5
    if part:
        words = f"the first {shown} of {slots.shape[1]} numbers"
        canvas.text(0.5, top + 1.4 * len(slots) + 0.1, words, GRAY, 0.55, "l")
    if memory.ndim == 1:
        for place, bit in enumerate(memory):
            canvas.box(0.5 + place, top, 0.9, 0.9, BLUE if bit else PAPER, GRAY)
        return canvas.pixels()
    for row, slot in enumerate(slots):
        for place, number in enumerate(slot[:shown]):
            box = (0.5 + place, top + 1.4 * row, 0.9, 0.9)
            if isinstance(space, spaces.Box):
                color = faint(BLUE if number > 0 else RED, min(1.0, abs(float(number))))
                canvas.box(*box, color, GRAY, 0.04)
            else:  # a number is one too large, so that 0 is empty
                canvas.box(*box, PAPER if number else PALE, GRAY, 0.04)
                words = str(int(number) - 1) if number else ""
                canvas.text(0.95 + place, top + 0.45 + 1.4 * row, words, INK, 0.5)
    return canvas.pixels()
