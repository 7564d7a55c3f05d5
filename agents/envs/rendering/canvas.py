"""A picture to draw on: positions and sizes in units, of which a board's cell is one."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge
from PIL import Image, ImageDraw, ImageFont

from zoo.annotations import fitted

Color = tuple[int, int, int]
Number = float | int | np.number

PAPER: Color = (250, 249, 246)
INK: Color = (38, 42, 51)
GRAY: Color = (150, 155, 163)
PALE: Color = (226, 227, 229)
WALL: Color = (88, 94, 105)
RED: Color = (205, 58, 58)
BLUE: Color = (48, 105, 190)
GREEN: Color = (46, 145, 86)
ORANGE: Color = (226, 142, 34)
WATER: Color = (214, 230, 244)

HUES: tuple[Color, ...] = (
    *(BLUE, RED, GREEN, ORANGE),
    *((131, 88, 178), (30, 160, 170), (214, 95, 160), (140, 110, 60), (120, 160, 30), GRAY),
)
"""Colors of things that are only told apart, such as the channels of an observation."""

HEADER = 1.9
"""Height of the two lines above every picture."""

_NARROWEST = 7.0  # so that the lines can be read; they are made small enough to fit

_FONTS: dict[int, Any] = {}


def faint(color: Color, share: Number = 0.3) -> Color:
    """Mix the color of what the agent does not see.

    **Arguments:**

    - `color`: the color of the same thing in sight.
    - `share`: how much of it is left, from 0 to 1; the rest is paper.

    **Returns:**

    A color.
    """
    mixed = share * np.array(color) + (1 - share) * np.array(PAPER)
    red, green, blue = (int(x) for x in np.round(mixed))
    return red, green, blue


class Canvas:
    """A picture with a title above it. Places are (x, y) in units from the upper left corner."""

    def __init__(self, width: Number, height: Number, scale: int, title: str):
        """**Arguments:**

        - `width`, `height`: size in units, without the title's lines. Pictures of less than 7
            units get margins at both sides.
        - `scale`: pixels per unit; at least 4.
        - `title`: one or two lines, written as small as they need to be. The size of a picture does
            not depend on them, so that the frames of a film are equal.
        """
        self.scale = fitted("scale", scale, Annotated[int, Ge(4)])
        self.width = max(width, _NARROWEST)
        self.left = (self.width - width) / 2  # what is drawn stays in the middle
        size = (round(self.width * scale), round((height + HEADER) * scale))
        self.image = Image.new("RGB", size, PAPER)
        self._pen = ImageDraw.Draw(self.image)
        for line, (words, color) in enumerate(zip(title.split("\n"), (INK, GRAY), strict=False)):
            length = _font(round(0.6 * scale)).getlength(words) / scale
            size = 0.6 * min(1.0, (self.width - 0.6) / max(length, 0.1))
            self._write(0.3 * scale, (0.55 + 0.8 * line) * scale, words, color, size, "lm")

    def _at(self, x: Number, y: Number) -> tuple[int, int]:
        return round((x + self.left) * self.scale), round((y + HEADER) * self.scale)

    def box(
        self,
        x: Number,
        y: Number,
        width: Number,
        height: Number,
        fill: Color | None = None,
        line: Color | None = None,
        thickness: Number = 0.06,
    ) -> None:
        """Draw a rectangle.

        **Arguments:**

        - `x`, `y`: its upper left corner.
        - `width`, `height`: its size.
        - `fill`: the color inside; none leaves what is there.
        - `line`: the color of the border, if any.
        - `thickness`: of the border.
        """
        left, top = self._at(x, y)
        right, bottom = self._at(x + width, y + height)
        corners = (left, top, max(right - 1, left), max(bottom - 1, top))
        self._pen.rectangle(corners, fill=fill, outline=line, width=self._pixels(thickness))

    def disc(
        self, x: Number, y: Number, radius: Number, fill: Color | None, line: Color | None = None
    ) -> None:
        """Draw a circle around a place; without a color the inside stays, or the border lacks."""
        corners = (*self._at(x - radius, y - radius), *self._at(x + radius, y + radius))
        self._pen.ellipse(corners, fill=fill, outline=line, width=self._pixels(0.06))

    def polygon(self, points: Sequence[tuple[Number, Number]], fill: Color) -> None:
        """Draw a polygon with these corners."""
        self._pen.polygon([self._at(*point) for point in points], fill=fill)

    def line(
        self, points: Sequence[tuple[Number, Number]], color: Color, thickness: Number = 0.1
    ) -> None:
        """Draw lines from point to point."""
        places = [self._at(*point) for point in points]
        self._pen.line(places, fill=color, width=self._pixels(thickness))

    def text(
        self,
        x: Number,
        y: Number,
        words: str,
        color: Color = INK,
        size: Number = 0.6,
        to: str = "m",
    ) -> None:
        """Write a line.

        **Arguments:**

        - `x`, `y`: where; the height is that of the line's middle.
        - `words`: what.
        - `color`: the color of the letters.
        - `size`: their height.
        - `to`: whether x is the line's left end ("l"), its middle ("m") or its right end ("r").
        """
        self._write(*self._at(x, y), words, color, size, f"{to}m")

    def paste(self, picture: np.ndarray, x: Number, y: Number) -> None:
        """Put a picture's pixels onto this one, its upper left corner at a place."""
        self.image.paste(Image.fromarray(picture), self._at(x, y))

    def agent(self, row: Number, column: Number) -> None:
        """Draw the agent in a cell."""
        self.disc(column + 0.5, row + 0.5, 0.34, BLUE, INK)

    def pixels(self) -> np.ndarray:
        """Give what was drawn as an array `[height, width, 3]` of uint8."""
        return np.asarray(self.image)

    def _pixels(self, size: Number) -> int:
        return max(1, round(size * self.scale))

    def _write(self, x: Number, y: Number, words: str, color: Color, size: Number, anchor: str):
        font = _font(max(4, round(size * self.scale)))
        self._pen.text((float(x), float(y)), words, fill=color, font=font, anchor=anchor)


def _font(size: int) -> Any:
    """Pillow's own font, which needs no file of the system."""
    if size not in _FONTS:
        _FONTS[size] = ImageFont.load_default(size)
    return _FONTS[size]
