"""Curves in characters, for a terminal."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from rich.text import Text

from agents.cli.tables import LEAST_OF_A_NAME
from agents.running.statistics import apart

# A character of braille is two dots wide and four high; the bits of its dots, by row and column.
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_BLANK = 0x2800
_COLORS = ("bright_blue", "bright_red", "bright_green", "bright_magenta", "bright_yellow", "cyan")


def color(number: int) -> str:
    """Return the color of a curve, by its number."""
    return _COLORS[number % len(_COLORS)]


def plot(
    curves: Mapping[str, tuple[np.ndarray, np.ndarray]], *, width: int, height: int
) -> list[Text]:
    """Draw curves into lines of text, with an axis for each direction.

    **Arguments:**

    - `curves`: horizontal and vertical coordinates by name, each of shape `[points]`, the former
        rising; the n-th has `color(n)`.
    - `width`, `height`: of all the text, in characters.

    **Raises:**

    `ValueError` if there is no point that could be drawn.
    """
    xs, ys = (np.concatenate([curve[axis] for curve in curves.values()]) for axis in (0, 1))
    ys = ys[np.isfinite(ys)]
    if not ys.size:
        raise ValueError("`curves` has no point that could be drawn")
    left, right = apart(0.0, float(xs.max()))
    low, high = apart(float(ys.min()), float(ys.max()))
    marks = ticks(low, high, max(2, height // 3))
    names = [f"{mark:.12g}" for mark in marks]
    margin = max(map(len, names)) + 2
    rows, columns = max(2, height - 2), max(8, width - margin)
    canvas = np.zeros((rows, columns), int)
    owner = np.full((rows, columns), -1)
    for number, (x, y) in enumerate(curves.values()):
        dots = _dots((x - left) / (right - left), (y - low) / (high - low), canvas.shape)
        canvas, owner = canvas | dots, np.where(dots > 0, number, owner)
    at = {round((high - mark) / (high - low) * (rows - 1)): n for n, mark in enumerate(marks)}
    lines = []
    for row in range(rows):
        name = names[at[row]] if row in at else ""
        line = Text(f"{name:>{margin - 1}}" + ("┤" if row in at else "│"), no_wrap=True)
        characters = [chr(_BLANK + bits) if bits else " " for bits in canvas[row].tolist()]
        for number, stretch in itertools.groupby(
            zip(owner[row].tolist(), characters, strict=True), key=lambda pair: pair[0]
        ):
            text = "".join(character for _, character in stretch)
            line.append(text, color(number) if number >= 0 else "")
        lines.append(line)
    return lines + _horizontal_axis(left, right, margin, columns)


def _dots(x: np.ndarray, y: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The bits that one curve sets in each character; its coordinates are from 0 to 1."""
    height, width = 4 * shape[0], 2 * shape[1]
    present = np.isfinite(y)
    x, y = x[present] * (width - 1), (1 - y[present]) * (height - 1)
    dots = np.zeros((height, width), bool)
    if x.size:
        columns = np.arange(math.floor(x[0]), math.floor(x[-1]) + 1)
        rows = np.interp(columns, x, y).round().astype(int)
        rows[-1] = round(y[-1])
        for column, row, after in zip(columns, rows, [*rows[1:], rows[-1]], strict=True):
            upper, lower = sorted((row, after))
            dots[upper : max(upper + 1, lower), column] = True
            dots[row, column] = True
    cells = dots.reshape(shape[0], 4, shape[1], 2)
    return (cells * _DOTS[None, :, None, :]).sum(axis=(1, 3))


def ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers from `low` to `high`: 1, 2 or 5 times a power of ten apart.

    They are `most` at most, and one at least where `most` is 2 or more.
    """
    least = (high - low) / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(step for step in (power, 2 * power, 5 * power, 10 * power) if step >= least)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def _horizontal_axis(left: float, right: float, margin: int, columns: int) -> list[Text]:
    marks = ticks(left, right, max(2, columns // 14))
    line, names = ["─"] * columns, [" "] * (margin + columns)
    for mark in marks:
        at = round((mark - left) / (right - left) * (columns - 1))
        line[at] = "┬"
        name = short(mark)
        start = min(margin + at - len(name) // 2, margin + columns - len(name))
        names[start : start + len(name)] = name
    corner = Text(" " * (margin - 1) + "└" + "".join(line), no_wrap=True)
    return [corner, Text("".join(names).rstrip(), no_wrap=True)]


def short(number: float) -> str:
    """Write a number with a letter for thousands, millions or billions, such as 1.5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.4g}{letter}"
    return f"{number:g}"


def legend(rows: Sequence[tuple[str, str]], width: int) -> list[Text]:
    """Return a line for each curve: a stroke in its color, its name, and what is said of it.

    Names are cut in the middle where a line would be longer than `width`: runs of a sweep often
    begin alike.
    """
    stroke = "━━ "
    said = max((len(words) for _, words in rows), default=0)
    longest = max((len(name) for name, _ in rows), default=0)
    room = min(longest, max(LEAST_OF_A_NAME, width - len(stroke) - 2 - said))
    return [
        Text.assemble((stroke, color(number)), f"{_cut(name, room):<{room}}  {words}", no_wrap=True)
        for number, (name, words) in enumerate(rows)
    ]


def _cut(name: str, room: int) -> str:
    """A name without its middle, if it is too long."""
    if len(name) <= room:
        return name
    kept = room - 1
    return f"{name[: kept - kept // 2]}…{name[len(name) - kept // 2 :]}"
