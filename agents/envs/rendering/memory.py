"""Pictures of environments with an external memory: the memory is below the environment."""

from typing import Any

import numpy as np
from gymnax.environments import spaces

from ..external_memory import ExternalMemory
from .canvas import BLUE, GRAY, INK, PALE, PAPER, RED, Canvas, faint
from .frame import draw, title

_MOST_NUMBERS = 40  # of a slot


@draw.register(ExternalMemory)
def _memory(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    space = env.env.observation_space(params)
    seen = np.asarray(state.observation)
    above = draw(env.env, params, state.env_state, seen.reshape(space.shape), scale)
    height, width = (size / scale for size in above.shape[:2])
    memory = np.asarray(state.memory)
    slots = memory[:, None] if memory.ndim == 1 else memory
    shown = min(slots.shape[1], _MOST_NUMBERS) if len(slots) else 0
    canvas = Canvas(
        max(width, shown + 1, len(slots) + 1),
        height + 1.4 * max(1, len(slots)) + 0.8,
        scale,
        title(env, state),
    )
    canvas.paste(above, 0, 0)
    canvas.line([(0, height + 0.2), (canvas.width, height + 0.2)], GRAY, 0.05)
    top = height + 0.5
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
