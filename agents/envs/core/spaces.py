"""A space that gymnax does not have, and its own ones, compared by what they hold."""

from collections.abc import Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces
from jax.core import Tracer
from jaxtyping import Array, Bool, Int, Int32, PRNGKeyArray

from .arrays import as_whole

LARGEST = float(np.finfo(np.float32).max)
"""What gymnax and others write where there is no bound."""


class _ByContent:
    """Equal to every space of its kind that holds the same."""

    content: Hashable

    def __eq__(self, other: object) -> bool:
        """Tell whether another space holds the same."""
        return isinstance(other, _ByContent) and self.content == other.content

    def __hash__(self) -> int:
        """Equal for equal spaces."""
        return hash(self.content)


class Discrete(_ByContent, spaces.Discrete):
    """gymnax's, compared by content."""


class Box(_ByContent, spaces.Box):
    """gymnax's, compared by content."""


class OpenBox(Box):
    """A box that has no bounds, or not on all sides: see `open_box`."""

    def sample(self, key: PRNGKeyArray) -> Array:
        """Draw as gymnasium does: uniformly between two bounds, from one on exponentially, and
        normally where there is none."""
        low, high = (jnp.broadcast_to(side, self.shape) for side in (self.low, self.high))
        below, above = low <= -LARGEST, high >= LARGEST
        keys = jax.random.split(key, 3)
        normal = jax.random.normal(keys[0], self.shape, self.dtype)
        positive = jax.random.exponential(keys[1], self.shape, self.dtype)
        share = jax.random.uniform(keys[2], self.shape, self.dtype)
        # A side without a bound would make infinities of what is not chosen.
        low, high = jnp.where(below, 0, low), jnp.where(above, 0, high)
        one_sided = jnp.where(below, high - positive, low + positive)
        between = low + share * (high - low)
        return jnp.where(below & above, normal, jnp.where(below | above, one_sided, between))


class Tuple(_ByContent, spaces.Tuple):
    """gymnax's, compared by content."""


class Dict(_ByContent, spaces.Dict):
    """gymnax's, compared by content."""


class MultiDiscrete(_ByContent, spaces.Space):
    """Several discrete numbers at once, each with its own count of values.

    **Attributes:**

    - `nvec`: how many values each number has.
    - `shape`: `(len(nvec),)`.
    - `dtype`: int32.
    """

    def __init__(self, nvec: Sequence[int]):
        """**Arguments:**

        - `nvec`: how many values each number has; each at least 1.

        **Raises:**

        `ValueError` if a count is less than 1 or there is none; `ValueError` or `TypeError` if
        `nvec` is no list of whole numbers.
        """
        self.nvec = as_whole("nvec", nvec)
        if not self.nvec or min(self.nvec) < 1:
            raise ValueError(f"`nvec` (={nvec!r}) must hold counts of at least 1.")
        self.shape = (len(self.nvec),)
        self.dtype = jnp.dtype(jnp.int32)
        self.content = MultiDiscrete, self.nvec

    def __repr__(self) -> str:
        """The counts."""
        return f"MultiDiscrete({list(self.nvec)})"

    def sample(self, key: PRNGKeyArray) -> Int32[Array, " numbers"]:
        """Draw every number uniformly."""
        counts = jnp.asarray(self.nvec, jnp.int32)
        return jax.random.randint(key, self.shape, 0, counts, jnp.int32)

    def contains(self, x: Int[Array, " numbers"]) -> Bool[Array, ""]:
        """Tell whether every number is in its range."""
        x = jnp.asarray(x)
        return jnp.all((x >= 0) & (x < jnp.asarray(self.nvec, x.dtype)))


def by_content(space: Any) -> Any:
    """Give a space like another one, of a kind that compares by content.

    gymnax's compare by identity, and so would what has them as static fields: policies of two seeds
    could not be averaged, one from a pickle would not be like itself, and a program would be
    compiled for each. A space of another kind stays what it is, and so does one whose bounds are no
    numbers yet, because it was made inside of a program that is traced.
    """
    if isinstance(space, _ByContent):
        return space
    if type(space) is spaces.Discrete:
        return _like(space, Discrete, (int(space.n), str(space.dtype)))
    if type(space) is spaces.Box:
        if isinstance(space.low, Tracer) or isinstance(space.high, Tracer):
            return space
        sides = (np.asarray(side) for side in (space.low, space.high))
        bounds = tuple((str(side.dtype), side.shape, side.tobytes()) for side in sides)
        return _like(space, Box, (tuple(space.shape), str(jnp.dtype(space.dtype)), bounds))
    if type(space) is spaces.Tuple:
        parts: Any = tuple(map(by_content, space.spaces))
        return _of_parts(space, Tuple, parts, tuple(enumerate(parts)))
    if type(space) is spaces.Dict:
        parts = {key: by_content(part) for key, part in space.spaces.items()}
        return _of_parts(space, Dict, parts, tuple(parts.items()))
    return space


def open_box(space: spaces.Box) -> OpenBox:
    """Give a box of which elements can be drawn where its bounds are the largest numbers.

    gymnax's draws uniformly between them, which float32 has no width for: all are infinite.
    """
    return _like(space, OpenBox, by_content(space).content)


def _of_parts(space: Any, kind: type, parts: Any, items: tuple[tuple[Any, Any], ...]) -> Any:
    if not all(isinstance(part, _ByContent) for _, part in items):
        return space
    made = _like(space, kind, items)
    made.spaces = parts
    return made


def _like(space: Any, kind: type, content: Hashable) -> Any:
    made = object.__new__(kind)
    made.__dict__.update(space.__dict__, content=(kind, content))
    return made
