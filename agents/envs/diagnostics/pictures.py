"""Pictures of prediction and diagnostics."""

import math
from typing import Any

import numpy as np

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
    faint,
)
from ..rendering.frame import draw, title
from .copy_task import CopyTask
from .memory_chain import MemoryChain
from .mortar_mayhem import MortarMayhem
from .mystery_path import MysteryPath
from .t_maze import TMaze
from .three_state import RETURNS, STATES, ThreeState
from .three_state_cycle import ThreeStateCycle
from .trace_conditioning import TraceConditioning


@draw.register(CopyTask)
def _copy(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    time, count = int(state.time), int(state.count)
    bits = np.asarray(state.bits)
    canvas = Canvas(max(10, env.max_bits + 1), 4.4, scale, title(env, state))
    for row, words in enumerate(("bits", "asked for")):
        canvas.text(0.5, 0.3 + 2 * row, words, GRAY, 0.5, "l")
        for place in range(count):
            step = place + row * count
            now = step == time
            box = (0.5 + place, 0.7 + 2 * row, 0.9, 0.9)
            canvas.box(*box, PAPER if now else PALE, ORANGE if now else GRAY, 0.1 if now else 0.04)
            if place <= time:
                in_sight = now and not row
                color = INK if in_sight else (178, 181, 187)
                canvas.text(place + 0.95, 1.15 + 2 * row, str(int(bits[place])), color)
    return canvas.pixels()


def _three_places(canvas: Canvas, place: int, color: Color, outlined: int) -> None:
    """Three states in a ring, of which the present one is filled and one is outlined."""
    angles = [2 * math.pi * k / STATES - math.pi / 2 for k in range(STATES)]
    places = [(4.5 + 2.4 * math.cos(a), 3.9 + 2.4 * math.sin(a)) for a in angles]
    canvas.line([*places, places[0]], PALE, 0.15)
    for number, (x, y) in enumerate(places):
        line = INK if number == outlined else GRAY
        canvas.disc(x, y, 0.9, color if number == place else PAPER, line)
        canvas.text(x, y, str(number), INK, 0.8)


@draw.register(ThreeState)
def _three_state(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    place = int(state.place)
    canvas = Canvas(9, 7, scale, title(env, state))
    _three_places(canvas, place, GREEN, RETURNS)
    if place == RETURNS:  # where it came from is not seen any more
        canvas.text(4.5, 6.6, f"next: {int(state.previous)}", faint(INK, 0.4), 0.6)
    return canvas.pixels()


@draw.register(ThreeStateCycle)
def _cycle(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    place = int(state.place)
    canvas = Canvas(9, 7, scale, title(env, state))
    # Only the first state is told from the others.
    _three_places(canvas, place, faint(ORANGE, 0.6) if place else GREEN, 0)
    return canvas.pixels()


@draw.register(TraceConditioning)
def _trace(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    left = [int(state.us_left), int(state.cs_left), *np.asarray(state.distractors_left).tolist()]
    names = ["US", "CS", *(str(i) for i in range(1, env.num_distractors + 1))]
    canvas = Canvas(max(9, len(left) + 1), 4.6, scale, title(env, state))
    for place, (name, steps) in enumerate(zip(names, left, strict=True)):
        color = (RED, BLUE)[place] if place < 2 else ORANGE
        box = (0.5 + place, 0.3, 0.9, 1.8)
        canvas.box(*box, color if steps else PALE, GRAY, 0.04)
        canvas.text(place + 0.95, 2.5, name, INK if steps else GRAY, 0.5)
    wait = int(state.wait)
    what = "US" if bool(state.awaits_us) else "CS"
    canvas.text(0.5, 3.4, f"{what} in {wait} steps", (178, 181, 187), 0.55, "l")
    canvas.box(0.5, 3.9, (len(left) - 0.1) * min(1, wait / env.max_iti), 0.3, PALE)
    return canvas.pixels()


_MOST_CELLS = 40  # of a corridor or a path that a picture shows


def _part(cells: int, at: int) -> tuple[int, int]:
    """Where the part of a long row begins that is drawn, around a cell, and how long it is."""
    shown = min(cells, _MOST_CELLS)
    return min(max(0, at - shown // 2), cells - shown), shown


@draw.register(TMaze)
def _t_maze(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    north, position = bool(state.goal_north), int(state.position)
    first, shown = _part(env.length + 3, 1 + position)
    start, end = 1 - first, 1 + env.length - first
    canvas = Canvas(shown, 5, scale, title(env, state))
    canvas.box(0, 0, shown, 5, WALL)
    canvas.box(max(0, start), 2, min(end + 1, shown) - max(0, start), 1, PAPER)
    goal = 1 if north else 3
    if end < shown:
        canvas.box(end, 1, 1, 3, PAPER)
        canvas.box(end, goal, 1, 1, faint(GREEN, 0.5))
    sign = ORANGE if position == 0 else faint(ORANGE)
    # An arrow to the goal's side, on the start's cell: seen from there only.
    tip, foot = (1.1, 1.8) if north else (3.9, 3.2)
    if start >= 0:
        points = [(0.5, tip), (0.9, foot), (0.1, foot)]
        canvas.polygon([(start + x, y) for x, y in points], sign)
    turned = bool(state.turned)
    if turned:
        canvas.text(1, 0.5, "turned", PAPER, 0.6, "l")
    canvas.agent(2, start + position)
    return canvas.pixels()


_NAMES = ("stay", "up", "right", "down", "left")  # Mortar Mayhem's commands


@draw.register(MemoryChain)
def _memory_chain(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    time, context, asked = int(state.time), int(state.context), int(state.asked)
    canvas = Canvas(max(10, env.bits + 1), 4.2, scale, title(env, state))
    in_sight = time == 0
    for bit in range(env.bits):
        question = time >= env.length and bit == asked
        line = (ORANGE, 0.1) if question else (GRAY, 0.04)
        canvas.box(0.5 + bit, 0.4, 0.9, 0.9, PAPER if in_sight else PALE, *line)
        color = INK if in_sight else faint(INK, 0.4)
        canvas.text(bit + 0.95, 0.85, str(context >> bit & 1), color)
    wide = canvas.width - 1
    canvas.box(0.5, 2.2, wide, 0.4, PALE)
    canvas.box(0.5, 2.2, wide * min(1, time / env.length), 0.4, BLUE)
    words = f"bit {asked}?" if time >= env.length else f"{env.length - time} steps to the question"
    canvas.text(0.5, 3.2, words, INK if time >= env.length else GRAY, 0.55, "l")
    return canvas.pixels()


@draw.register(MortarMayhem)
def _mortar_mayhem(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    time, size = int(state.time), env.size
    commands = np.asarray(state.commands)
    canvas = Canvas(max(9, size + 1), size + 3.4, scale, title(env, state))
    shows = time < env.length
    now = commands[time if shows else min(time - env.length, env.length - 1)]
    what = "shown" if shows else "to follow"
    canvas.text(0.5, 0.6, f"{what}: {_NAMES[now]}", INK if shows else faint(INK, 0.4), 0.7, "l")
    for row, column in np.ndindex(size, size):
        canvas.box(0.5 + column, 1.4 + row, 0.9, 0.9, PALE, GRAY, 0.04)
    canvas.disc(0.95 + int(state.column), 1.85 + int(state.row), 0.3, BLUE)
    done = 0 if shows else (time - env.length) / env.length
    canvas.box(0.5, size + 2, canvas.width - 1, 0.4, PALE)
    canvas.box(0.5, size + 2, (canvas.width - 1) * min(1, done), 0.4, GREEN)
    return canvas.pixels()


@draw.register(MysteryPath)
def _mystery_path(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    path, column = np.asarray(state.path), int(state.column)
    words = f"{int(state.falls)} of {env.most_falls} falls"
    first, shown = _part(env.length, column - 1)
    canvas = Canvas(max(9, shown + 2), env.rows + 1, scale, title(env, state, words))
    for row, place in np.ndindex(env.rows, shown):
        holds = path[first + place] == row
        color = GREEN if holds and first + place < column else faint(GREEN) if holds else PALE
        canvas.box(1.5 + place, 0.5 + row, 0.9, 0.9, color, GRAY, 0.04)
    stands = 0.5 + (path[column - 1] if column else (env.rows - 1) / 2)
    canvas.disc(0.95 + column - first, stands + 0.45, 0.3, BLUE)
    return canvas.pixels()
