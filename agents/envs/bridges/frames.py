"""MinAtar with frames that are half hidden or lost at random: options of `make`."""

from typing import Any

import numpy as np
from gymnax.environments.environment import Environment

from ..wrappers import Flicker, Hide

_HALVES = {
    "none": (slice(0), slice(0)),
    "top": (slice(5), slice(None)),
    "bottom": (slice(5, None), slice(None)),
    "left": (slice(None), slice(5)),
    "right": (slice(None), slice(5, None)),
}


def frame_options(name: str) -> dict[str, Any]:
    """List the options that an environment has because of its frames.

    **Arguments:**

    - `name`: a name of gymnax.

    **Returns:**

    The options with their values by default; none unless it is one of MinAtar, whose frames have 10
    rows and 10 columns.
    """
    return {"mask": "none", "flicker": 0.0} if name.endswith("-MinAtar") else {}


def hide_frames(env: Environment, mask: str, flicker: float) -> Environment:
    """Hide half of every frame, and lose whole frames at random.

    **Arguments:**

    - `env`: an environment of MinAtar.
    - `mask`: the half that shows zeros: "top", "bottom", "left" or "right"; or "none".
    - `flicker`: probability that a frame is all zeros, in [0, 1].

    **Returns:**

    The environment, wrapped in `Hide` and `Flicker` where they do something.

    **Raises:**

    `ValueError` for another value.
    """
    if mask not in _HALVES:
        raise ValueError(f"`mask` (={mask!r}) must be one of: {', '.join(_HALVES)}.")
    if not 0 <= flicker <= 1:
        raise ValueError(f"`flicker` (={flicker!r}) must be in [0, 1].")
    if mask != "none":
        hidden = np.zeros(env.observation_space(env.default_params).shape, bool)
        hidden[_HALVES[mask]] = True
        env = Hide(env, hidden)
    return Flicker(env, flicker) if flicker else env
