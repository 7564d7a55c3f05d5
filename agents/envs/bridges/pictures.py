"""Pictures of environments of other packages; brax has its own page."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnax.environments.environment import Environment

from ..popgym.control.pictures import draw_cart, draw_pendulum
from ..rendering.canvas import Canvas
from ..rendering.film import whole
from ..rendering.frame import draw, draw_planes, title
from .adapter import GymnaxEnvironment, gymnax_settings
from .brax_env import BraxEnvironment
from .package_env import PackageEnvironment, package_settings


@draw.register(GymnaxEnvironment)
def _gymnax(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    """gymnax's own two of these, MinAtar's frames, and the observation of all others."""
    words = title(env, state)
    if env.name == "CartPole-v1":
        place, angle = float(state.x), float(state.theta)
        return draw_cart(place, angle, scale, words, (state.x_dot, observation))
    if env.name == "Pendulum-v1":
        speed = float(state.theta_dot)
        return draw_pendulum(float(state.theta), speed, observation, scale, words)
    if env.name.endswith("-MinAtar") and observation is None:
        with gymnax_settings():
            observation = env.env.get_obs(state)
        return draw_planes(np.asarray(observation), scale, words)
    return draw.dispatch(object)(env, params, state, observation, scale)


@draw.register(PackageEnvironment)
def _package(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    """The package's own picture, and the observation where it has none."""
    with package_settings():
        pixels = env.port.picture(state.inner)
    if pixels is None:
        return draw.dispatch(object)(env, params, state, observation, scale)
    height, width = pixels.shape[:2]
    canvas = Canvas(max(8.0, width / scale), height / scale, scale, title(env, state))
    canvas.paste(pixels, 0, 0)
    return canvas.pixels()


def save_brax_html(env: Environment, states: Sequence[Any], path: str | Path) -> None:
    """Write a rollout of a robot as brax's own page of HTML, whole or not at all.

    A browser draws it in three dimensions; it loads brax's viewer from the network.

    **Arguments:**

    - `env`: an environment of brax, wrapped or not.
    - `states`: its states in their order, not batched; at least one.
    - `path`: the file to write; one that is there is replaced.

    **Raises:**

    `TypeError` if the environment is not brax's; `ValueError` without a state; `OSError` if the
    file cannot be written.
    """
    inner: Any = env
    states = list(states)
    while not isinstance(inner, BraxEnvironment):
        if not hasattr(inner, "env"):
            raise TypeError(f"`env` (={env!r}) must be an environment of brax.")
        inner = inner.env
        states = [state.env_state for state in states]
    if not states:
        raise ValueError("`states` must hold at least one state.")
    with gymnax_settings(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from brax.io import html

        page = html.render(inner.brax.sys, [state.pipeline_state for state in states])
    with whole(path) as unfinished:
        unfinished.write_text(page)
