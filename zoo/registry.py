"""Cells by name: `get`, `names`, and the serializable recipe `spec`."""

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
from jaxtyping import Array

from zoo._init import check_sizes
from zoo.base import AbstractMemory
from zoo.gru import GRU
from zoo.lru import LRU
from zoo.mlp import MLP
from zoo.rtu import RTU, NonlinearRTU
from zoo.stack import Block, Stack


def _rtu(
    inputs: int,
    hidden: int,
    *,
    nonlinear: bool = False,
    activation: str | None = None,
    r_min: float = 0.0,
    r_max: float = 1.0,
    max_phase: float = 6.283185307179586,
    key: Array,
) -> AbstractMemory:
    """A linear or nonlinear RTU; see `zoo.RTU` and `zoo.NonlinearRTU`."""
    chosen = {} if activation is None else {"activation": activation}
    kind = NonlinearRTU if nonlinear else RTU
    return kind(inputs, hidden, r_min=r_min, r_max=r_max, max_phase=max_phase, key=key, **chosen)


_CELLS: dict[str, Callable[..., AbstractMemory]] = {
    "gru": GRU,
    "lru": LRU,
    "mlp": MLP,
    "rtu": _rtu,
}


def names() -> tuple[str, ...]:
    """The names that `zoo.get` and `zoo.spec` know, sorted.

    **Returns:**

    A tuple of strings.
    """
    return tuple(sorted(_CELLS))


def options(name: str) -> dict[str, Any]:
    """The options of a cell and their default values.

    **Arguments:**

    - `name`: one of `zoo.names()`.

    **Returns:**

    A dictionary from option to default.

    **Raises:**

    `ValueError` for an unknown name, with the nearest known ones.
    """
    signature = inspect.signature(_lookup(name))
    keyword_only = [p for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
    return {p.name: p.default for p in keyword_only if p.name != "key"}


def _lookup(name: str) -> Callable[..., AbstractMemory]:
    if name not in _CELLS:
        near = difflib.get_close_matches(name, _CELLS, n=3, cutoff=0.4)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(f"`name` (={name!r}) must be one of {', '.join(names())}.{hint}")
    return _CELLS[name]


@dataclass(frozen=True)
class Spec:
    """The recipe of a memory: a name and numbers, no arrays. Made by `zoo.spec`."""

    name: str
    hidden: int
    layers: int = 1
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        known = options(self.name)
        check_sizes(hidden=self.hidden, layers=self.layers)
        for option in self.options:
            if option not in known:
                listed = ", ".join(f"{k}={v!r}" for k, v in known.items()) or "none"
                raise ValueError(
                    f"`{option}` (={self.options[option]!r}) is not an option of {self.name!r}, "
                    f"which has: {listed}."
                )

    def __hash__(self):
        return hash((self.name, self.hidden, self.layers, tuple(sorted(self.options.items()))))

    def build(self, inputs: int, key: Array) -> AbstractMemory:
        """Make the memory.

        **Arguments:**

        - `inputs`: width of `x`.
        - `key`: PRNG key.

        **Returns:**

        The cell, or for more than one layer a `zoo.Stack` of gated residual blocks.

        **Raises:**

        `ValueError` for an option's value that the cell does not take.
        """
        make = _lookup(self.name)
        if self.layers == 1:
            return make(inputs, self.hidden, key=key, **self.options)
        blocks = []
        for layer_key in jax.random.split(key, self.layers):
            cell_key, block_key = jax.random.split(layer_key)
            cell = make(inputs, self.hidden, key=cell_key, **self.options)
            blocks.append(Block(cell, key=block_key))
        return Stack(blocks)

    def to_dict(self) -> dict[str, Any]:
        """The recipe as a dictionary of plain values, for JSON.

        **Returns:**

        A dictionary that `Spec(**dictionary)` turns back into the recipe.
        """
        return {
            "name": self.name,
            "hidden": self.hidden,
            "layers": self.layers,
            "options": dict(self.options),
        }


def spec(name: str, *, hidden: int, layers: int = 1, **options: Any) -> Spec:
    """The serializable recipe of a memory.

    **Arguments:**

    - `name`: one of `zoo.names()`.
    - `hidden`: number of recurrent units, as the cell's paper counts them.
    - `layers`: more than one makes a `zoo.Stack` of gated residual blocks.
    - `options`: the cell's own; see `zoo.options(name)`.

    **Returns:**

    A `zoo.Spec`; `spec.build(inputs, key)` makes the memory.

    **Raises:**

    `ValueError` for an unknown name or option, or a size that is not a whole number above 0.
    """
    return Spec(name, hidden, layers, options)


def get(
    name: str,
    *,
    hidden: int,
    inputs: int | None = None,
    layers: int = 1,
    key: Array | None = None,
    **options: Any,
) -> AbstractMemory:
    """A memory by name: `zoo.get("rtu", hidden=256)`.

    **Arguments:**

    - `name`: one of `zoo.names()`.
    - `hidden`: number of recurrent units, as the cell's paper counts them.
    - `inputs`: width of `x`; `hidden` by default.
    - `layers`: more than one makes a `zoo.Stack` of gated residual blocks.
    - `key`: PRNG key; `jax.random.key(0)` by default.
    - `options`: the cell's own; see `zoo.options(name)`.

    **Returns:**

    A `zoo.AbstractMemory`.

    **Raises:**

    `ValueError` for an unknown name or option, or a value that the cell does not take.
    """
    recipe = spec(name, hidden=hidden, layers=layers, **options)
    return recipe.build(
        hidden if inputs is None else inputs, jax.random.key(0) if key is None else key
    )
