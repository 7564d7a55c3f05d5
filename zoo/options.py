"""Options of a recipe: values that JSON can hold, checked against what a cell says of them."""

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from zoo.annotations import fitted
from zoo.parts.checks import shown


class Options(dict[str, Any]):
    """A dictionary that does not change, with a hash; lists in it become tuples.

    A dictionary, so that JSON, pickle and `dataclasses.asdict` take it.
    """

    def __init__(self, entries: Mapping[str, Any] | Iterator[tuple[str, Any]] = ()):  # pyright: ignore[reportArgumentType]
        """`entries`: what it holds."""
        super().__init__({name: _frozen(value) for name, value in dict(entries).items()})

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)

    def _refuse(self, *arguments: Any, **keywords: Any) -> NoReturn:
        raise TypeError("options do not change: make another recipe, or another agent, with them.")

    __setitem__ = __delitem__ = __ior__ = _refuse  # pyright: ignore[reportAssignmentType]
    clear = pop = popitem = setdefault = update = _refuse  # pyright: ignore[reportAssignmentType]


def parse_options(texts: Sequence[str], name: str = "option") -> dict[str, Any]:
    """Read options that are written as `key=value`.

    **Arguments:**

    - `texts`: the options; values are Python literals or JSON's words, else text.
    - `name`: what an error calls one.

    **Raises:**

    `ValueError` if one is not `key=value`, or a key is given twice.
    """
    parsed: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise ValueError(f"{name} (={text!r}) must be written as key=value")
        if key in parsed:
            raise ValueError(f"{name} gives {key!r} twice")
        parsed[key] = _literal(value)
    return parsed


def _literal(text: str) -> Any:
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _frozen(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    return value.item() if isinstance(value, np.generic) else value


def is_plain(value: Any) -> bool:
    """Whether JSON can hold a value: a number, a string, a bool, `None`, or a list of such."""
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    return value is None or type(value) in (bool, int, float, str)


def check_option(name: str, value: Any, parameter: inspect.Parameter) -> Any:
    """Check what is given for an option, and return it in Python's own types.

    **Arguments:**

    - `name`: of the memory, for the error.
    - `value`: what is given.
    - `parameter`: the option: its annotation says what it may be, or else its default.

    **Raises:**

    `TypeError` or `ValueError` with the option, the value and the rule.
    """
    kind = parameter.annotation
    if kind is parameter.empty or isinstance(kind, str):
        default = parameter.default
        kind = Any if default is None else type(default)
    found = fitted(parameter.name, value, kind, of=name)
    if not is_plain(found):
        raise TypeError(
            f"`{parameter.name}` (={shown(value)}) of {name!r} must be a value of JSON."
        )
    return found
