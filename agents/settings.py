"""Settings of agents: what they may hold, their plain form for JSON, and checks of them."""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

import zoo
from agents.envs import describe


def to_plain(settings: Any) -> dict[str, Any]:
    """Describe settings as plain values, for JSON.

    **Arguments:**

    - `settings`: a dataclass whose fields hold numbers, texts, `None`, options, recipes of
      memories, environments or other such dataclasses.

    **Returns:**

    A dictionary for `from_plain`.
    """

    def plain(name: str, value: Any) -> Any:
        if name == "env":
            return describe(value)
        if isinstance(value, zoo.Spec):
            return value.to_dict()
        if dataclasses.is_dataclass(value):
            return {"name": type(value).__name__, **to_plain(value)}
        return dict(value) if isinstance(value, Mapping) else value

    return {f.name: plain(f.name, getattr(settings, f.name)) for f in dataclasses.fields(settings)}


def from_plain(kind: type, plain: Mapping[str, Any]) -> Any:
    """Make the settings that `to_plain` described.

    **Arguments:**

    - `kind`: the dataclass.
    - `plain`: a dictionary.

    **Raises:**

    `ValueError` for a setting that the dataclass does not have, or the name of an unknown choice;
    and what the dataclass raises.
    """
    annotations = typing.get_type_hints(kind)
    names = [f.name for f in dataclasses.fields(kind)]
    for name in plain:
        if name not in names:
            raise ValueError(
                f"`{name}` (={plain[name]!r}) is not a setting of {kind.__name__}, which has: "
                f"{', '.join(names)}."
            )

    def value(name: str, given: Any) -> Any:
        choices: list[Any] = [c for c in _union(annotations[name]) if dataclasses.is_dataclass(c)]
        if zoo.Spec in choices:
            return zoo.Spec(**given)
        if not choices or not isinstance(given, Mapping):
            return given
        by_name = {choice.__name__: choice for choice in choices}
        rest = dict(given)
        chosen = rest.pop("name", None)
        if chosen not in by_name:
            raise ValueError(f"`{name}` (={chosen!r}) must be one of {', '.join(by_name)}.")
        return from_plain(by_name[chosen], rest)

    return kind(**{name: value(name, given) for name, given in plain.items()})


def _union(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def check_numbers(rule: str, holds: Callable[[Any], bool], **numbers: Any) -> None:
    """Raise `ValueError` for the first number that does not hold, with the rule behind "must
    be"."""
    for name, value in numbers.items():
        if not holds(value):
            raise ValueError(f"`{name}` (={value}) must be {rule}.")


def check_kind(kind: type, rule: str, **settings: Any) -> None:
    """Raise `TypeError` for the first setting that is not of a kind, with the rule behind "must
    be"."""
    for name, value in settings.items():
        if not isinstance(value, kind):
            raise TypeError(f"`{name}` (={value!r}) must be {rule}.")


def check_words(words: tuple[str, ...], **settings: Any) -> None:
    """Raise `ValueError` for the first setting that is none of some words."""
    for name, value in settings.items():
        if value not in words:
            raise ValueError(f"`{name}` (={value!r}) must be one of {', '.join(words)}.")
