"""One picture of one state: `render`, and the way from an environment to what draws it."""

import functools
from typing import Any

import jax
import numpy as np
from gymnax.environments import spaces

from ..core.encoding import is_bounded
from ..core.hidden import FullyObserved
from ..wrappers import Wrapper
from ..wrappers.base import check_environment
from .canvas import BLUE, GRAY, HUES, INK, PALE, RED, Canvas

_MOST_BARS = 48
_GRAY = (), (1,)


def render(
    env: Any, params: Any, state: Any, *, observation: Any = None, scale: int = 24
) -> np.ndarray:
    """Draw a state of an environment, for people to look at.

    Every environment of this library has a picture that also shows, faintly, what the agent does
    not see, such as mines and cards that lie face down. Of others, the observation is drawn: images
    as they are, planes as colored cells, vectors as bars. Runs on the host, outside of compiled
    programs.

    **Arguments:**

    - `env`: the environment, wrapped or not.
    - `state`: its state, not batched.
    - `observation`: what was seen in this state. Some pictures need it to be complete: RepeatFirst
        shows the present card, which is not part of the state. Without it, bars are of the state.
    - `scale`: pixels per cell of a board; at least 4.

    **Returns:**

    An array of shape `[height, width, 3]` and type uint8.

    **Raises:**

    `TypeError` or `ValueError` if `scale` is not such an integer, or `env` is no environment.
    """
    return draw(check_environment(env), params, state, observation, scale)


@functools.singledispatch
def draw(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    """Draw a state, by the environment's class; families of environments register theirs.

    **Arguments:**

    those of `render`.
    """
    shown = state if observation is None else observation
    what = "state" if observation is None else "observation"
    is_array = isinstance(observation, jax.Array | np.ndarray)
    if is_array and observation.ndim in (2, 3) and observation.size:
        drawn = draw_image if _is_image(env.observation_space(params)) else draw_planes
        return drawn(np.asarray(observation), scale, title(env, state))
    return _draw_bars(_numbers(shown), scale, title(env, state, what))


def title(env: Any, state: Any, words: str = "") -> str:
    """Write what stands above a picture.

    **Arguments:**

    - `env`: the environment.
    - `state`: its state.
    - `words`: what else is to be said.

    **Returns:**

    Two lines: the environment's name, and the time with the words.
    """
    time = getattr(state, "time", None)
    parts = [*([] if time is None else [f"t = {int(time)}"]), *([words] if words else [])]
    return f"{env.name}\n{', '.join(parts)}"


@draw.register(Wrapper)
def _draw_wrapped(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    """The environment inside; what it shows is known if the wrapper has left its shape."""
    space = env.env.observation_space(params)
    if observation is not None and not _could_be_of(space, observation):
        observation = None
    return draw(env.env, params, state.env_state, observation, scale)


@draw.register(FullyObserved)
def _draw_twin(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    """The picture of the environment that hides something, which has no need of what it hides."""
    picture = draw.dispatch(env.hiding)
    if observation is not None and picture is not draw.dispatch(object):
        observation = observation[0]
    return picture(env, params, state, observation, scale)


def _could_be_of(space: Any, observation: Any) -> bool:
    if isinstance(space, spaces.Tuple):
        return (
            isinstance(observation, tuple)
            and len(observation) == len(space.spaces)
            and all(map(_could_be_of, space.spaces, observation))
        )
    kept = getattr(space, "shape", None) == getattr(observation, "shape", ())
    whole = np.asarray(jax.tree.leaves(observation)[0]).dtype.kind in "iub"
    return kept and whole == (not isinstance(space, spaces.Box))


def _is_image(space: Any) -> bool:
    """Whether it is of red, green and blue, by bounds beyond 1, or of gray, by those of a byte: a
    frame may be black, and a board of small numbers is none."""
    if not is_bounded(space):
        return False
    high = np.max(np.asarray(space.high))
    return bool(high > 1 if space.shape[2:] == (3,) else high >= 255 and space.shape[2:] in _GRAY)


def draw_image(frame: np.ndarray, scale: int, words: str) -> np.ndarray:
    """Draw an image as it is.

    **Arguments:**

    - `frame`: shape `[height, width, 3]`, or `[height, width]` and `[height, width, 1]` of gray,
        from 0 to 255.
    - `scale`: pixels per unit of the title.
    - `words`: the title.
    """
    height, width = frame.shape[:2]
    canvas = Canvas(width / scale, height / scale, scale, words)
    colors = np.broadcast_to(frame.reshape(height, width, -1), (height, width, 3))
    canvas.paste(np.clip(colors, 0, 255).astype(np.uint8), 0, 0)
    return canvas.pixels()


def draw_planes(frame: np.ndarray, scale: int, words: str) -> np.ndarray:
    """Draw where a matrix is above 0, and a stack of planes by one color for each.

    **Arguments:**

    - `frame`: shape `[rows, columns]` or `[rows, columns, planes]`.
    - `scale`: pixels per cell.
    - `words`: the title.
    """
    planes = frame[..., None] if frame.ndim == 2 else frame
    rows, columns, count = planes.shape
    canvas = Canvas(columns, rows, scale, words)
    canvas.box(0, 0, columns, rows, INK)
    for plane in range(count):
        for row, column in np.argwhere(planes[..., plane] > 0):
            canvas.box(column, row, 1, 1, HUES[plane % len(HUES)] if count > 1 else PALE)
    canvas.box(0, 0, columns, rows, line=GRAY)
    return canvas.pixels()


def _numbers(tree: Any) -> np.ndarray:
    """All numbers of a pytree, without PRNG keys."""
    leaves = [np.asarray(x) for x in jax.tree.leaves(tree) if not _is_key(x)]
    return np.concatenate([np.zeros(0), *(np.ravel(x).astype(np.float64) for x in leaves)])


def _is_key(x: Any) -> bool:
    return hasattr(x, "dtype") and jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key)


def _draw_bars(numbers: np.ndarray, scale: int, words: str) -> np.ndarray:
    """A bar for each number, up from the middle if positive, down if negative."""
    shown = numbers[:_MOST_BARS]
    if len(numbers) > _MOST_BARS:
        words = f"{words}, {_MOST_BARS} of {len(numbers)}"
    width = 0.9 if len(shown) > 8 else 1.8
    canvas = Canvas(max(8.0, width * len(shown) + 1), 7, scale, words)
    if len(shown) == 1:
        canvas.text(canvas.width / 2, 3.2, f"{shown[0]:.3g}", INK, 2.0)
        return canvas.pixels()
    middle = 3.4
    largest = max(1.0, float(np.abs(np.nan_to_num(shown)).max(initial=0)))
    canvas.line([(0.3, middle), (width * len(shown) + 0.7, middle)], GRAY, 0.05)
    for place, number in enumerate(np.nan_to_num(shown)):
        # A square root, so that small numbers show beside large ones.
        size = 2.8 * np.sqrt(abs(number) / largest)
        left = 0.5 + width * place + 0.1
        top = middle - size if number > 0 else middle
        canvas.box(left, top, width - 0.2, size, BLUE if number > 0 else RED)
        if width > 1:
            canvas.text(left + width / 2 - 0.1, 6.6, f"{number:.3g}", size=0.5)
    canvas.text(0.4, 0.3, f"±{largest:.3g}", GRAY, 0.45, "l")
    return canvas.pixels()
