"""Films: frames as a GIF, and robots of brax as a page of HTML."""

import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from gymnax.environments.environment import Environment
from PIL import Image

from ..adapter import gymnax_settings
from ..brax_env import BraxEnvironment

_MOST_FPS = 50  # viewers show faster ones slowly


def save_gif(frames: Sequence[np.ndarray], path: str | Path, *, fps: float | int = 5.0) -> None:
    """Write frames as a GIF that repeats for ever, whole or not at all.

    Equal frames in a row become one that is shown for longer.

    **Arguments:**

    - `frames`: arrays of shape `[height, width, 3]` and type uint8, such as `render` returns; at
        least one, and all of one size.
    - `path`: the file to write; one that is there is replaced.
    - `fps`: frames per second, from 0.1 to 50; a GIF rounds the time of a frame to 0.01 s.

    **Raises:** `ValueError` if the frames or `fps` break their rule; `OSError` if the file cannot
    be written.
    """
    if not 0.1 <= fps <= _MOST_FPS:
        raise ValueError(f"`fps` (={fps}) must be from 0.1 to {_MOST_FPS}.")
    if not len(frames):
        raise ValueError("`frames` must hold at least one frame.")
    shape = np.shape(frames[0])
    for number, frame in enumerate(frames):
        if np.ndim(frame) != 3 or np.shape(frame)[2] != 3 or frame.dtype != np.uint8:
            raise ValueError(
                f"`frames[{number}]` (of shape {np.shape(frame)} and type "
                f"{np.asarray(frame).dtype}) must have shape [height, width, 3] and type uint8."
            )
        if frame.shape != shape:
            raise ValueError(
                f"`frames[{number}]` (of shape {frame.shape}) must have the first one's shape "
                f"(={shape})."
            )
    first, *others = (Image.fromarray(np.ascontiguousarray(frame)) for frame in frames)
    with _whole(path) as unfinished:
        first.save(
            unfinished,
            format="GIF",
            save_all=True,
            append_images=others,
            duration=round(1000 / fps),
            loop=0,
        )


def save_brax_html(env: Environment, states: Sequence[Any], path: str | Path) -> None:
    """Write a rollout of a robot as brax's own page of HTML, whole or not at all.

    A browser draws it in three dimensions; it loads brax's viewer from the network.

    **Arguments:**

    - `env`: an environment of brax, wrapped or not.
    - `states`: its states in their order, not batched; at least one.
    - `path`: the file to write; one that is there is replaced.

    **Raises:** `TypeError` if the environment is not brax's; `ValueError` without a state;
    `OSError` if the file cannot be written.
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
    with _whole(path) as unfinished:
        unfinished.write_text(page)


@contextmanager
def _whole(path: str | Path) -> Iterator[Path]:
    """A file beside another one, which it replaces when all is written."""
    path = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    unfinished = Path(name)
    try:
        yield unfinished
        unfinished.chmod(0o644)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
