"""Settings of agents: what they may hold, their plain form for JSON, and checks of them."""

import dataclasses
import functools
import inspect
import types
import typing
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

import equinox as eqx
import jax

import zoo
from agents.envs import describe
from zoo.annotations import annotations_of, fit_fields
from zoo.parts.checks import did_you_mean, shown


def warn_unused(settings: Any, where: str, *names: str) -> None:
    """Warn of settings that somebody has set and that have no effect.

    **Arguments:**

    - `settings`: a dataclass.
    - `where`: the settings beside which they have none.
    - `names`: fields, which at their default are let be, as are those that there are not.
    """
    defaults = {f.name: f.default for f in dataclasses.fields(settings)}
    for name in filter(defaults.__contains__, names):
        if (value := getattr(settings, name)) != defaults[name]:
            warnings.warn(f"`{name}` (={value!r}) has no effect with {where}.", stacklevel=2)


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

    `ValueError` for a setting that the dataclass does not have, for one that is missing, or the
    name of an unknown choice; and what the dataclass raises.
    """
    annotations = annotations_of(kind)
    check_names(kind, plain)
    missing = [f.name for f in dataclasses.fields(kind) if f.name not in plain]
    if missing:  # its default may be another one than where the others were written
        raise ValueError(f"`{missing[0]}`, a setting of {kind.__name__}, is missing.")

    def value(name: str, given: Any) -> Any:
        choices: list[Any] = [c for c in _union(annotations.get(name)) if is_dataclass(c)]
        if not choices or not isinstance(given, Mapping):
            return given
        if zoo.Spec in choices:
            return from_plain(zoo.Spec, given)
        by_name = {choice.__name__: choice for choice in choices}
        rest = dict(given)
        chosen = rest.pop("name", None)
        if chosen not in by_name:
            raise ValueError(f"`{name}` (={chosen!r}) must be one of {', '.join(by_name)}.")
        return from_plain(by_name[chosen], rest)

    return kind(**{name: value(name, given) for name, given in plain.items()})


class Settings:
    """A dataclass whose settings are given by name: one that there is not is told with the nearest.

    **Raises:**

    `TypeError` for the name of a setting that it does not have.
    """

    def __new__(cls, *_: Any, **given: Any):
        # Of `__init__`, which may be another than that of the fields.
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        names = [p.name for p in parameters]
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
        for name, value in given.items():
            if name not in names and not takes_any:
                raise TypeError(_unknown(cls, names, name, value))
        return super().__new__(cls)


def check_names(kind: type, given: Mapping[str, Any], *, of: str = "") -> None:
    """Raise `ValueError` for a setting that a dataclass does not have; `of` names who gives it."""
    names = [f.name for f in dataclasses.fields(kind)]
    for name, value in given.items():
        if name not in names:
            raise ValueError(_unknown(kind, names, name, value, of))


def _unknown(kind: type, names: Sequence[str], name: str, value: Any, of: str = "") -> str:
    subject = f"`{name}` (={shown(value)})" + (f" of {of!r}" if of else "")
    listed = ", ".join(names) or "none"
    hint = did_you_mean(name, names)
    return f"{subject} is not a setting of {kind.__name__}, which has: {listed}.{hint}"


def _union(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def check_settings(settings: Any) -> None:
    """Check the settings of an agent against their annotations, and make them plain.

    A recipe of a memory is tried without drawing its parameters. The environment, and choices among
    dataclasses such as a gradient, are left to others.

    **Arguments:**

    - `settings`: a frozen dataclass, in its `__post_init__`.

    **Raises:**

    `TypeError` or `ValueError` naming the setting, its value and the rule.
    """
    kinds = annotations_of(type(settings))
    choices = [name for name, kind in kinds.items() if any(map(is_dataclass, _union(kind)))]
    fit_fields(settings, but={"env", *choices})
    for name in choices:
        if zoo.Spec in _union(kinds[name]):
            value = getattr(settings, name)
            check_kind(zoo.Spec, "a recipe, such as zoo.spec('rtu', hidden=64)", **{name: value})
            abstract_memory(value)


@functools.lru_cache(maxsize=256)
def abstract_memory(recipe: zoo.Spec) -> zoo.AbstractMemory:
    """Return the memory of a recipe with shapes in place of parameters.

    **Raises:**

    `ValueError` for an option's value that the cell does not take.
    """
    return eqx.filter_eval_shape(recipe.build, recipe.hidden, jax.random.key(0))


def check_kind(kind: type | tuple[type, ...], rule: str, **settings: Any) -> None:
    """Raise `TypeError` for the first setting that is not of a kind, or of none of several, with
    the rule behind "must be"."""
    for name, value in settings.items():
        if not isinstance(value, kind):
            raise TypeError(f"`{name}` (={shown(value)}) must be {rule}.")
