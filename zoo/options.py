"""Options of a recipe: values that JSON can hold, checked against what a cell says of them."""

import inspect
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn, Union, get_args, get_origin

from rtrl import AbstractSensitivity
from zoo.kinds.choices import SENSITIVITIES

_WORDS = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a string",
    types.NoneType: "None",
}


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


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


def is_plain(value: Any) -> bool:
    """Whether JSON can hold a value: a number, a string, a bool, `None`, or a list of such."""
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    return value is None or type(value) in (bool, int, float, str)


def check_option(name: str, value: Any, parameter: inspect.Parameter) -> None:
    """Check what is given for an option.

    **Arguments:**

    - `name`: of the memory, for the error.
    - `value`: what is given.
    - `parameter`: the option: its annotation says what it may be, or else its default.

    **Raises:**

    `ValueError` with the option, the value and the rule.
    """
    kind = parameter.annotation
    if kind is parameter.empty or isinstance(kind, str):
        default = parameter.default
        kind = Any if default is None else type(default)
    if not is_plain(value) or not _fits(value, kind):
        raise ValueError(f"`{parameter.name}` (={value!r}) of {name!r} must be {_said(kind)}.")


def _fits(value: Any, kind: Any) -> bool:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in arguments)
    if origin is Literal:
        return value in arguments
    if _is_sequence(kind):
        if not isinstance(value, (list, tuple)):
            return False
        if origin is tuple and Ellipsis not in arguments:
            return len(value) == len(arguments) and all(map(_fits, value, arguments))
        return all(_fits(entry, arguments[0]) for entry in value) if arguments else True
    if _is_sensitivity(kind):
        return isinstance(value, str) and value in SENSITIVITIES
    if kind in (None, types.NoneType):
        return value is None
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return type(value) is kind if kind in _WORDS else True


def _said(kind: Any) -> str:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        kinds = [kind for kind in arguments if kind is not int or float not in arguments]
        return " or ".join(map(_said, kinds))
    if origin is Literal:
        return "one of " + ", ".join(map(repr, arguments))
    if _is_sequence(kind):
        if origin is tuple and Ellipsis not in arguments:
            return f"a list of {len(arguments)} ({', '.join(map(_said, arguments))})"
        return f"a list, each of it {_said(arguments[0])}" if arguments else "a list"
    if _is_sensitivity(kind):
        return "one of " + ", ".join(SENSITIVITIES)
    return _WORDS.get(types.NoneType if kind is None else kind, "a value of JSON")


def _is_sequence(kind: Any) -> bool:
    return (get_origin(kind) or kind) in (list, tuple, Sequence)


def _is_sensitivity(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, AbstractSensitivity)
