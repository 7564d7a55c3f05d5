"""Pictures of the card games and of the bandit."""

from typing import Any

import numpy as np

from ...rendering.canvas import (
    BLUE,
    GRAY,
    GREEN,
    INK,
    ORANGE,
    PALE,
    PAPER,
    RED,
    Canvas,
    Color,
    Number,
    faint,
)
from ...rendering.frame import draw, title
from .autoencode import Autoencode
from .card_game import CARDS_PER_DECK, KINDS
from .concentration import Concentration
from .count_recall import CountRecall
from .higher_lower import HigherLower
from .multiarmed_bandit import MultiarmedBandit
from .repeat_first import RepeatFirst
from .repeat_previous import RepeatPrevious

_RANKS = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
_BACK: Color = (120, 140, 180)
_COLUMNS = 13
_CARD = 2.6  # width of a card that is shown large


def _symbol(
    canvas: Canvas, x: Number, y: Number, size: Number, kind: int, kinds: int, hidden: bool
) -> None:
    """What tells a card apart, around a place: a color, a suit (♠ ♦ ♣ ♥) or a rank."""
    red = kind == 0 if kinds == 2 else kind % 2 == 1
    color = RED if red and kinds != 13 else INK
    color = faint(color) if hidden else color
    if kinds == 13:
        canvas.text(x, y, _RANKS[kind], color, 1.5 * size)
    elif kinds == 2:
        canvas.disc(x, y, 0.6 * size, color)
    elif kind == 1:
        canvas.polygon(
            [(x, y - size), (x + 0.7 * size, y), (x, y + size), (x - 0.7 * size, y)], color
        )
    elif kind == 3:
        _lobes(canvas, x, y - 0.2 * size, size, color, -1)
    elif kind == 0:
        _lobes(canvas, x, y + 0.15 * size, size, color, 1)
        _stem(canvas, x, y, size, color)
    else:
        for dx, dy in ((0, -0.42), (-0.42, 0.2), (0.42, 0.2)):
            canvas.disc(x + dx * size, y + dy * size, 0.4 * size, color)
        _stem(canvas, x, y, size, color)


def _lobes(canvas: Canvas, x: Number, y: Number, size: Number, color: Color, up: int) -> None:
    """A heart, or with `up` = 1 the leaf of a spade."""
    for side in (-1, 1):
        canvas.disc(x + side * 0.38 * size, y, 0.42 * size, color)
    edge = y - up * 0.14 * size
    tip = y - up * 1.1 * size
    canvas.polygon([(x - 0.78 * size, edge), (x + 0.78 * size, edge), (x, tip)], color)


def _stem(canvas: Canvas, x: Number, y: Number, size: Number, color: Color) -> None:
    foot = y + size
    canvas.polygon([(x, y), (x + 0.35 * size, foot), (x - 0.35 * size, foot)], color)


def _card(
    canvas: Canvas,
    x: Number,
    y: Number,
    kind: int | None,
    kinds: int,
    *,
    hidden: bool = False,
    width: Number = _CARD,
    mark: Color | None = None,
) -> None:
    """A card with its upper left corner at a place; face down without a kind."""
    height = 1.25 * width
    paper = _BACK if kind is None else PALE if hidden else (255, 255, 255)
    canvas.box(x, y, width, height, paper, mark or GRAY, 0.12 if mark else 0.04)
    if kind is not None:
        middle = (x + width / 2, y + height / 2)
        _symbol(canvas, *middle, 0.3 * width, kind, kinds, hidden)


def _large(
    canvas: Canvas, x: Number, words: str, kind: int | None, kinds: int, hidden: bool = False
) -> None:
    """A large card with words below it."""
    _card(canvas, x, 0.3, kind, kinds, hidden=hidden)
    canvas.text(x + _CARD / 2, 0.3 + 1.25 * _CARD + 0.5, words, GRAY if hidden else INK, 0.55)


def _tiles(canvas: Canvas, y: Number, cards: Any, kinds: int, marked: int, shown: int) -> None:
    """Small cards in rows, hidden but for one, and one with a mark around it."""
    for place, kind in enumerate(cards):
        row, column = divmod(place, _COLUMNS)
        _card(
            canvas,
            0.3 + column,
            y + 1.25 * row,
            int(kind),
            kinds,
            hidden=place != shown,
            width=0.9,
            mark=ORANGE if place == marked else None,
        )


def _rows(cards: int) -> float:
    return 1.25 * -(-cards // _COLUMNS)


def _clock(canvas: Canvas, y: Number, time: int, steps: int) -> None:
    """How much of the episode is over."""
    canvas.box(0.3, y, 13, 0.25, PALE)
    canvas.box(0.3, y, 13 * min(time / steps, 1), 0.25, GRAY)


def _suit(observation: Any) -> int | None:
    return None if observation is None else int(np.asarray(observation))


@draw.register(RepeatFirst)
def _repeat_first(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    canvas = Canvas(13.6, 5.6, scale, title(env, state))
    _large(canvas, 2.5, "present card", _suit(observation), 4)
    _large(canvas, 8.5, "first card, asked for", int(state.first), 4, hidden=True)
    _clock(canvas, 5.1, int(state.time), env.num_steps)
    return canvas.pixels()


@draw.register(RepeatPrevious)
def _repeat_previous(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    time = int(state.time)
    kept = [int(state.recent[t % env.k]) for t in range(max(0, time - env.k + 1), time + 1)]
    asked = time + 1 >= env.k
    canvas = Canvas(13.6, 6 + _rows(env.k), scale, title(env, state, f"k = {env.k}"))
    _large(canvas, 2.5, "present card", kept[-1], 4)
    question = kept[0] if asked else None
    _large(canvas, 8.5, "asked for" if asked else "nothing asked yet", question, 4, hidden=True)
    _tiles(canvas, 5.1, kept, 4, 0 if asked else -1, len(kept) - 1)
    _clock(canvas, 5.4 + _rows(env.k), time, env.num_steps)
    return canvas.pixels()


@draw.register(Autoencode)
def _autoencode(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    time, number = int(state.time), env.num_cards
    dealt = np.asarray(state.cards)[: time + 1]
    asked = 2 * number - 2 - time if time >= number - 1 else -1
    words = "watch" if asked < 0 and time < number - 1 else "recite backwards"
    canvas = Canvas(13.6, 6 + _rows(number), scale, title(env, state, words))
    _large(canvas, 2.5, "present card", int(dealt[time]) if time < number else None, 4)
    question = int(dealt[asked]) if asked >= 0 else None
    _large(canvas, 8.5, "asked for" if asked >= 0 else "nothing asked", question, 4, hidden=True)
    _tiles(canvas, 5.1, dealt, 4, asked, time)
    _clock(canvas, 5.4 + _rows(number), time, env.num_steps)
    return canvas.pixels()


@draw.register(CountRecall)
def _count_recall(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    query = int(state.query)
    dealt = env.most - np.asarray(state.remaining)[0]
    canvas = Canvas(13.6, 10.2, scale, title(env, state))
    card = None if observation is None else int(np.asarray(observation)[0])
    _large(canvas, 2.5, "present card", card, env.kinds)
    _large(canvas, 8.5, "how many of these?", query, env.kinds)
    _counts(canvas, dealt, env.most, env.kinds, query)
    _clock(canvas, 9.7, int(state.time), env.num_steps)
    return canvas.pixels()


@draw.register(HigherLower)
def _higher_lower(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    kinds = KINDS["ranks"]
    left = np.asarray(state.remaining)
    canvas = Canvas(13.6, 10.2, scale, title(env, state))
    _large(canvas, 2.5, "present card", int(state.rank), kinds)
    _large(canvas, 8.5, "next: higher or lower?", None, kinds)
    _counts(canvas, left, CARDS_PER_DECK * env.decks // kinds, kinds, int(state.rank))
    _clock(canvas, 9.7, int(state.time), env.num_steps)
    return canvas.pixels()


def _counts(canvas: Canvas, counts: Any, most: int, kinds: int, marked: int) -> None:
    """Faint bars for how many cards of each kind there are."""
    width = 13 / kinds
    for kind, count in enumerate(counts):
        x, height = 0.3 + width * kind, 2.4 * int(count) / most
        color = faint(ORANGE if kind == marked else BLUE, 0.45)
        canvas.box(x + 0.1, 8.2 - height, width - 0.2, height, color)
        canvas.text(x + width / 2, 7.9 - height, str(int(count)), GRAY, 0.5)
        _symbol(canvas, x + width / 2, 8.9, 0.4, kind, kinds, hidden=False)


@draw.register(Concentration)
def _concentration(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    board, up, first = np.asarray(state.board), np.asarray(state.up), int(state.first)
    seen = np.where(up, board, env.kinds) if observation is None else np.asarray(observation)
    canvas = Canvas(13.6, 1 + _rows(env.num_cards), scale, title(env, state))
    for place, kind in enumerate(board):
        row, column = divmod(place, _COLUMNS)
        shown = place == first or seen[place] < env.kinds
        mark = ORANGE if place == first else GREEN if up[place] else RED if shown else None
        turned = None if kind == env.kinds else int(kind)
        x, y = 0.3 + column, 0.2 + 1.25 * row
        _card(canvas, x, y, turned, env.kinds, hidden=not shown, width=0.9, mark=mark)
    _clock(canvas, 0.5 + _rows(env.num_cards), int(state.time), env.num_steps)
    return canvas.pixels()


@draw.register(MultiarmedBandit)
def _bandit(env: Any, params: Any, state: Any, observation: Any, scale: int) -> np.ndarray:
    chances = np.asarray(state.chances)
    canvas = Canvas(max(8, env.arms + 0.6), 7.4, scale, title(env, state))
    if observation is not None and int(state.time):
        paid = bool(np.asarray(observation))
        canvas.disc(0.9, 0.6, 0.3, GREEN if paid else faint(RED))
        canvas.text(1.4, 0.6, "paid" if paid else "did not pay", to="l", size=0.55)
    for arm, chance in enumerate(chances):
        canvas.box(0.4 + arm, 1.2, 0.8, 5, PAPER, GRAY, 0.04)
        if chance >= 0:  # its probability is drawn with the first pull
            canvas.box(0.4 + arm, 6.2 - 5 * chance, 0.8, 5 * chance, faint(BLUE, 0.5))
        canvas.text(0.8 + arm, 6.7, str(arm), GRAY if chance < 0 else INK, 0.5)
    return canvas.pixels()
