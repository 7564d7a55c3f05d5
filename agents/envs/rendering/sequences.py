"""Pictures of sequences: prediction, diagnostics and recall."""

import math
from typing import Any

import numpy as np

from ..action_sequence import ActionSequence
from ..copy_task import CopyTask
from ..three_state import STATES, ThreeState
from ..trace_conditioning import TraceConditioning
from .canvas import BLUE, GRAY, GREEN, INK, ORANGE, PALE, PAPER, RED, Canvas, faint
from .frame import draw, title


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


@draw.register(ThreeState)
def _three_state(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    place = int(state.place)
    canvas = Canvas(9, 7, scale, title(env, state))
    angles = [2 * math.pi * k / STATES - math.pi / 2 for k in range(STATES)]
    places = [(4.5 + 2.4 * math.cos(a), 3.9 + 2.4 * math.sin(a)) for a in angles]
    canvas.line([*places, places[0]], PALE, 0.15)
    for number, (x, y) in enumerate(places):
        here = number == place
        # Only the first state is told from the others.
        color = (GREEN if number == 0 else faint(ORANGE, 0.6)) if here else PAPER
        canvas.disc(x, y, 0.9, color, INK if number == 0 else GRAY)
        canvas.text(x, y, str(number), INK, 0.8)
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
