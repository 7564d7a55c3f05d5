"""Pictures of cart-poles and pendulums."""

import math
from typing import Any

import numpy as np

from ...rendering.canvas import BLUE, GRAY, INK, ORANGE, PALE, RED, Canvas, Number
from ...rendering.frame import draw, title
from .cartpole import MAX_POSITION, CartPole
from .pendulum import Pendulum


@draw.register(CartPole)
def _cart_pole(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    place, angle = float(state.position), float(state.angle)
    return draw_cart(place, angle, scale, title(env, state), (state.velocity, observation))


def draw_cart(
    place: float, angle: float, scale: int, words: str, shown: tuple[Any, Any]
) -> np.ndarray:
    """Draw a cart and its pole.

    **Arguments:**

    - `place`: of the cart, 0 in the middle.
    - `angle`: of the pole, 0 upright, in radians.
    - `scale`: pixels per unit.
    - `words`: the title.
    - `shown`: the cart's velocity, and what the agent sees or None.
    """
    velocity, observation = shown
    canvas = Canvas(14, 8, scale, words)
    ground = 6.8
    canvas.line([(1, ground), (13, ground)], GRAY, 0.06)
    for limit in (-MAX_POSITION, MAX_POSITION):
        canvas.line([(7 + 2.3 * limit, ground - 0.3), (7 + 2.3 * limit, ground + 0.3)], RED)
    x = 7 + 2.3 * float(np.clip(place, -2.9, 2.9))
    canvas.box(x - 0.9, ground - 0.7, 1.8, 0.7, INK)
    joint = (x, ground - 0.7)
    tip = (joint[0] + 4.6 * math.sin(angle), joint[1] - 4.6 * math.cos(angle))
    canvas.line([joint, tip], ORANGE, 0.25)
    canvas.disc(*joint, 0.16, PALE, INK)
    speed = float(np.clip(velocity, -3, 3))
    canvas.line([(x, ground + 0.3), (x + speed, ground + 0.3)], BLUE, 0.12)
    _seen(canvas, observation, 7.6)
    return canvas.pixels()


def _seen(canvas: Canvas, observation: Any, y: Number) -> None:
    """The numbers that the agent sees."""
    if observation is not None:
        numbers = ", ".join(f"{x:.3f}" for x in np.ravel(np.asarray(observation))[:4])
        canvas.text(0.4, y, f"seen: {numbers}", GRAY, 0.5, "l")


@draw.register(Pendulum)
def _pendulum(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    speed = float(state.angular_velocity)
    return draw_pendulum(float(state.angle), speed, observation, scale, title(env, state))


def draw_pendulum(
    angle: float, speed: float, observation: Any, scale: int, words: str
) -> np.ndarray:
    """Draw a pendulum.

    **Arguments:**

    - `angle`: 0 upright, in radians.
    - `speed`: angular velocity.
    - `observation`: what the agent sees, or None.
    - `scale`: pixels per unit.
    - `words`: the title.
    """
    canvas = Canvas(9, 9, scale, words)
    canvas.disc(4.5, 4.2, 3.4, None, PALE)
    # Counted from upright, and to the left, as gymnasium draws it.
    tip = (4.5 - 3.4 * math.sin(angle), 4.2 - 3.4 * math.cos(angle))
    canvas.line([(4.5, 4.2), tip], ORANGE, 0.5)
    canvas.disc(*tip, 0.35, ORANGE)
    canvas.disc(4.5, 4.2, 0.2, INK)
    canvas.box(4.5 - max(speed, 0) / 2, 8, abs(speed) / 2, 0.25, BLUE)
    canvas.line([(4.5, 7.85), (4.5, 8.4)], GRAY, 0.05)
    _seen(canvas, observation, 8.65)
    return canvas.pixels()
