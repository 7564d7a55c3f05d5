"""Memories by name: `register`, `get`, `names`, and the serializable recipe `spec`."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import jax
from jaxtyping import Array

from rtrl import AbstractSensitivity
from zoo.annotations import Count, checked, fit_fields, signature_of
from zoo.kinds.choices import SENSITIVITIES, name_of, sensitivity_of
from zoo.memory import AbstractMemory
from zoo.options import Options, check_option, is_plain
from zoo.parts.checks import check_key, did_you_mean, same_definition, shown
from zoo.stack import Block, Stack, check_credit

Make = TypeVar("Make", bound=Callable[..., AbstractMemory])

# Every cell's file adds its own.
_MAKERS: dict[str, Callable[..., AbstractMemory]] = {}


def register(name: str, make: Make) -> Make:
    """Give a memory a name, for `zoo.get`, `zoo.spec`, agents, checkpoints and the command line.

    ```python
    import equinox as eqx
    import jax
    import zoo


    class Average(zoo.AbstractLinearCell):
        w: jax.Array
        keep: float = eqx.field(static=True)
        inputs: int = eqx.field(static=True)
        hidden: int = eqx.field(static=True)

        def __init__(self, inputs, hidden, *, keep: float = 0.9, key):
            self.w = jax.random.normal(key, (hidden, inputs))
            self.inputs, self.hidden, self.keep = inputs, hidden, keep

        def coefficients(self, x):
            drive = x @ self.w.T
            return jax.numpy.full_like(drive, self.keep), (1 - self.keep) * drive


    zoo.register("average", Average)
    cell = zoo.get("average", hidden=16, keep=0.5)
    ```

    **Arguments:**

    - `name`: a Python identifier that is not taken, but by what had the same name in the same
      module: a notebook's cell may be run again.
    - `make`: a class or function `(inputs, hidden, *, key, **options)`. Every option has a default
      that JSON can hold: a number, a string, true, false, null, or a list of such; or a choice of
      `sensitivity`. What is given for it is checked against its annotation, or its default.

    **Returns:**

    `make`.

    **Raises:**

    `ValueError` or `TypeError` for a name that is taken or no identifier, and for a `make` that
    cannot be called so.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"`name` (={name!r}) must be a Python identifier.")
    known = _MAKERS.get(name)
    if known is not None and not same_definition(known, make):
        raise ValueError(f"`name` (={name!r}) must be free: it is that of {known!r}.")
    if not callable(make):
        raise TypeError(f"`make` (={make!r}) must be a class or a function.")
    _check_signature(make)
    _MAKERS[name] = make
    return make


def _check_signature(make: Callable[..., Any]) -> None:
    rule = "must take `(inputs, hidden, *, key, **options)`"
    try:
        parameters = inspect.signature(make).parameters
    except ValueError as error:
        raise ValueError(f"`make` (={make!r}) {rule}: {error}.") from None
    positional = [p.name for p in parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
    if positional[:2] != ["inputs", "hidden"] or "key" not in parameters:
        listed = ", ".join(parameters)
        raise ValueError(f"`make` (={make!r}) {rule}, its arguments are ({listed}).")
    for p in parameters.values():
        if p.name in ("inputs", "hidden", "key"):
            continue
        if p.kind is not p.KEYWORD_ONLY:
            raise ValueError(f"`make` (={make!r}) {rule}: `{p}` must be an option by keyword only.")
        if p.name in ("name", "layers", "credit"):
            raise ValueError(
                f"`make` (={make!r}) {rule}: `{p.name}` is an argument of `zoo.get` and `zoo.spec` "
                "and must be called something else."
            )
        if p.default is p.empty:
            raise ValueError(f"`make` (={make!r}) {rule}: `{p}` must have a default.")
        named = isinstance(p.default, str) and p.default in SENSITIVITIES
        if p.name == "sensitivity" and not (named or isinstance(p.default, AbstractSensitivity)):
            raise ValueError(
                f"`make` (={make!r}) {rule}: the default of `{p}` must be a choice of the RTRL "
                "forms, such as rtrl.Exact()."
            )
        if p.name != "sensitivity" and isinstance(p.default, AbstractSensitivity):
            raise ValueError(
                f"`make` (={make!r}) {rule}: `{p}` must be called `sensitivity`, by which it is "
                "chosen."
            )
        if not is_plain(_plain(p.default)):
            raise ValueError(
                f"`make` (={make!r}) {rule}: the default of `{p}` must be a value of JSON."
            )


def names() -> tuple[str, ...]:
    """List the names that `zoo.get` and `zoo.spec` know, sorted.

    **Returns:**

    A tuple of strings.
    """
    return tuple(sorted(_MAKERS))


def options(name: str) -> dict[str, Any]:
    """List the options of a memory and their default values.

    **Arguments:**

    - `name`: one of `zoo.names()`.

    **Returns:**

    A dictionary from option to default.

    **Raises:**

    `ValueError` for an unknown name, with the nearest known ones.
    """
    return {option: _plain(p.default) for option, p in _parameters(name).items()}


def _parameters(name: str) -> dict[str, inspect.Parameter]:
    parameters = signature_of(_lookup(name)).parameters.values()
    keyword_only = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    return {p.name: p for p in keyword_only if p.name != "key"}


def _plain(value: Any) -> Any:
    """An option's value as a recipe holds it: choices by name."""
    return name_of(value) if isinstance(value, AbstractSensitivity) else value


def _lookup(name: str) -> Callable[..., AbstractMemory]:
    if name not in _MAKERS:
        raise ValueError(
            f"`name` (={name!r}) must be one of {', '.join(names())}.{did_you_mean(name, _MAKERS)}"
        )
    return _MAKERS[name]


@dataclass(frozen=True)
class Spec:
    """The recipe of a memory: a name and numbers, no arrays. Made by `zoo.spec`.

    Two recipes are equal, and have one hash, where they were given the same; also after JSON. An
    option that was given its default is given.
    """

    name: str
    hidden: Count
    layers: Count = 1
    options: dict[str, Any] = field(default_factory=dict)
    credit: str = "layerwise"

    def __post_init__(self):
        fit_fields(self)
        known = _parameters(self.name)
        given = {}
        for option, value in self.options.items():
            if option not in known:
                defaults = options(self.name).items()
                listed = ", ".join(f"{k}={v!r}" for k, v in defaults) or "none"
                raise ValueError(
                    f"`{option}` (={value!r}) is not an option of {self.name!r}, "
                    f"which has: {listed}.{did_you_mean(option, (*known, 'layers', 'credit'))}"
                )
            given[option] = check_option(self.name, _plain(value), known[option])
        object.__setattr__(self, "options", Options(given))
        check_credit(self.credit, self._sensitivity(known))

    def _sensitivity(self, known):
        default = _plain(known["sensitivity"].default) if "sensitivity" in known else "exact"
        return sensitivity_of(self.options.get("sensitivity", default))

    def build(self, inputs: int, key: Array) -> AbstractMemory:
        """Make the memory.

        **Arguments:**

        - `inputs`: width of `x`.
        - `key`: PRNG key.

        **Returns:**

        The cell, or for more than one layer a `zoo.Stack` of gated residual blocks.

        **Raises:**

        `ValueError` for an option's value that the cell does not take; `TypeError` where what is
        registered by the name makes no memory, and for a `key` that is none.
        """
        check_key(key)
        make, options = _lookup(self.name), dict(self.options)
        if "sensitivity" in options:
            options["sensitivity"] = sensitivity_of(options["sensitivity"])
        if self.layers == 1:
            memory = make(inputs, self.hidden, key=key, **options)
            if not isinstance(memory, AbstractMemory):
                raise TypeError(f"`name` (={self.name!r}) must make a memory, not {shown(memory)}.")
            return memory
        blocks = []
        for layer_key in jax.random.split(key, self.layers):
            cell_key, block_key = jax.random.split(layer_key)
            cell = make(inputs, self.hidden, key=cell_key, **options)
            blocks.append(Block(cell, key=block_key))
        return Stack(blocks, credit=self.credit)

    def to_dict(self) -> dict[str, Any]:
        """Give the recipe as a dictionary of plain values, for JSON.

        **Returns:**

        A dictionary that `Spec(**dictionary)` turns back into the recipe.
        """
        return {
            "name": self.name,
            "hidden": self.hidden,
            "layers": self.layers,
            "options": dict(self.options),
            "credit": self.credit,
        }


@checked
def spec(
    name: str, *, hidden: Count, layers: Count = 1, credit: str = "layerwise", **options: Any
) -> Spec:
    """Write the serializable recipe of a memory.

    **Arguments:**

    - `name`: one of `zoo.names()`.
    - `hidden`: number of recurrent units, as the cell's paper counts them.
    - `layers`: more than one makes a `zoo.Stack` of gated residual blocks.
    - `credit`: what RTRL follows through several layers, `"layerwise"` or `"exact"`; see
      `zoo.Stack`. The gradient of one layer is exact either way.
    - `options`: the cell's own; see `zoo.options(name)`.

    **Returns:**

    A `zoo.Spec`; `spec.build(inputs, key)` makes the memory.

    **Raises:**

    `ValueError` or `TypeError` for an unknown name or option, for a value of another kind than the
    option's, or a size that is not a whole number above 0.
    """
    return Spec(name, hidden, layers, options, credit)


@checked
def get(
    name: str,
    *,
    hidden: Count,
    inputs: Count | None = None,
    layers: Count = 1,
    credit: str = "layerwise",
    key: Array | None = None,
    **options: Any,
) -> AbstractMemory:
    """Make a memory by its name.

    ```python
    import jax.numpy as jnp
    import zoo

    cell = zoo.get("rtu", hidden=256, inputs=8)
    state, y = cell.step(cell.init_state(), jnp.ones(8))
    state, ys = cell.scan(state, jnp.ones((100, 8)))
    ```

    **Arguments:**

    - `name`: one of `zoo.names()`.
    - `hidden`: number of recurrent units, as the cell's paper counts them.
    - `inputs`: width of `x`; `hidden` by default.
    - `layers`: more than one makes a `zoo.Stack` of gated residual blocks.
    - `credit`: what RTRL follows through several layers, `"layerwise"` or `"exact"`; see
      `zoo.Stack`. The gradient of one layer is exact either way.
    - `key`: `jax.random.key(0)` by default.
    - `options`: the cell's own; see `zoo.options(name)`.

    **Returns:**

    A `zoo.AbstractMemory`.

    **Raises:**

    `ValueError` or `TypeError` for an unknown name or option, or a value that the cell does not
    take.
    """
    recipe = spec(name, hidden=hidden, layers=layers, credit=credit, **options)
    return recipe.build(
        hidden if inputs is None else inputs, jax.random.key(0) if key is None else key
    )
