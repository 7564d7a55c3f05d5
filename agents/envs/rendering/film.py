"""Films: frames as a GIF."""

import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image

_MOST_FPS = 50  # viewers show faster ones slowly
_LONGEST = 655_350  # milliseconds of one picture: 16 bits of hundredths of a second
_WIDEST = 2**16 - 1  # pixels


def save_gif(frames: Sequence[np.ndarray], path: str | Path, *, fps: float | int = 5.0) -> None:
    """Write frames as a GIF that repeats for ever, whole or not at all.

    Equal frames in a row become one that is shown for longer.

    **Arguments:**

    - `frames`: arrays of shape `[height, width, 3]` and type uint8, such as `render` returns; at
        least one, and all of one size.
    - `path`: the file to write; one that is there is replaced.
    - `fps`: frames per second, from 0.1 to 50; a GIF rounds the time of a frame to 0.01 s.

    **Raises:**

    `ValueError` if the frames or `fps` break their rule; `OSError` if the file cannot be written.
    """
    check_fps(fps)
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
    if max(shape) > _WIDEST:
        raise ValueError(
            f"`frames` (of shape {shape}) must have sides of at most {_WIDEST} pixels: "
            "a GIF counts no more."
        )
    time = round(1000 / fps)
    if len(frames) * time > _LONGEST and (longest := _most_in_a_row(frames)) * time > _LONGEST:
        raise ValueError(
            f"`fps` (={fps}) must be higher: {longest} equal frames in a row are shown as one, "
            f"which a GIF does for at most {_LONGEST / 1000:.0f} s."
        )
    first, *others = (Image.fromarray(np.ascontiguousarray(frame)) for frame in frames)
    with whole(path) as unfinished:
        first.save(
            unfinished,
            format="GIF",
            save_all=True,
            append_images=others,
            duration=time,
            loop=0,
        )


def check_fps(fps: float | int) -> None:
    """Raise `ValueError` for what are no frames per second of a GIF."""
    if not 0.1 <= fps <= _MOST_FPS:
        raise ValueError(f"`fps` (={fps}) must be from 0.1 to {_MOST_FPS}.")


def _most_in_a_row(frames: Sequence[np.ndarray]) -> int:
    """How many equal frames follow each other at most."""
    return max(sum(1 for _ in equal) for _, equal in itertools.groupby(frames, np.ndarray.tobytes))


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Give a file beside another one, which it replaces when all is written.

    **Arguments:**

    - `path`: the file to replace.

    **Returns:**

    A context manager of the file to write.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"`path` (={str(path)!r}) must be in a folder that is there.")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    unfinished = Path(name)
    try:
        yield unfinished
        unfinished.chmod(0o644)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
