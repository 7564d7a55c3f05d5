"""Values checked against annotations: options of cells, settings of agents, arguments of functions.

What is looked at are numbers and their bounds, texts, choices among words, sequences of such, and
classes. An error names the setting, its value and the rule: `TypeError` where the value is of
another kind, else `ValueError`.
"""

import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import jax
import numpy as np
from annotated_types import Ge, Gt, Interval

from rtrl import AbstractSensitivity
from zoo.kinds.choices import SENSITIVITIES, why_not
from zoo.parts.checks import MOST, shown

Function = TypeVar("Function", bound=Callable[..., Any])

Count = Annotated[int, Interval(ge=1, le=MOST)]
"""How many of what there has to be one of."""

Size = Annotated[int, Interval(ge=0, le=MOST)]
"""How many of what there may be none of."""

Seed = Annotated[int, Interval(ge=0, le=2**32 - 1)]
"""The root of some randomness: beyond, seeds give the same numbers."""

Positive = Annotated[float, Gt(0)]
"""A number above 0."""

NonNegative = Annotated[float, Ge(0)]
"""A number of at least 0."""

Share = Annotated[float, Interval(ge=0, le=1)]
"""A number in [0, 1]."""

Fraction = Annotated[float, Interval(gt=0, lt=1)]
"""A number above 0 and below 1."""

StepSize = Annotated[float, Interval(gt=0, le=1)]
"""A number above 0 and at most 1."""

_WORDS = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a string",
    types.NoneType: "None",
    dict: "a dictionary",
    jax.Array: "an array",
}
_LARGEST = {int: 2**63 - 1, float: float(np.finfo(np.float32).max)}
_WRONG = object()


def fitted(name: str, value: Any, kind: Any, *, of: str = "") -> Any:
    """Check a value against an annotation, and return it in Python's own types.

    Numbers may be NumPy's, a number may be whole where any is asked for, and sequences become
    tuples. A bool is no number, and neither NaN nor an infinity is one. Bounds of a number are
    those of annotated-types, as in `Count` or `Annotated[float, Gt(0)] | None`. Annotations of
    other things allow everything.

    **Arguments:**

    - `name`, `of`: of the setting, and of what it belongs to, for the error.
    - `value`: what was given.
    - `kind`: the annotation.

    **Raises:**

    `TypeError` or `ValueError` with the setting, the value and the rule.
    """
    found = _fitted(value, kind)
    broken = _broken(found, kind) if isinstance(found, int | float) else None
    if found is not _WRONG and broken is None:
        return found
    subject = f"`{name}` (={shown(value)})" + (f" of {of!r}" if of else "")
    if broken is not None:
        none = ", or None" if types.NoneType in _types(kind) else ""
        raise ValueError(f"{subject} must be {broken}{none}.")
    value = value.item() if isinstance(value, np.generic) else value
    rule = _said(kind)
    if _is_sensitivity(kind):
        rule += why_not(value)
    if isinstance(value, jax.Array):
        rule += ", and no array of JAX"
    known = _types(kind)
    if type(value) in known and type(value) in _LARGEST:
        rule += ", finite and of at most 3.4e38" if float in known else " of at most 64 bits"
    error = ValueError if type(value) in known else TypeError
    raise error(f"{subject} must be {rule}.")


def fit_fields(settings: Any, *, but: Collection[str] = ()) -> None:
    """Check the fields of a frozen dataclass against their annotations, and make them plain.

    **Arguments:**

    - `settings`: the dataclass, in its `__post_init__`.
    - `but`: names of fields that are not looked at.

    **Raises:**

    `TypeError` or `ValueError`; see `fitted`.
    """
    kinds = annotations_of(type(settings))
    for field in dataclasses.fields(settings):
        if field.name in kinds and field.name not in but:
            found = fitted(field.name, getattr(settings, field.name), kinds[field.name])
            object.__setattr__(settings, field.name, found)


@functools.cache
def annotations_of(kind: type) -> dict[str, Any]:
    """Return the annotations of a class's fields; none where they cannot be evaluated."""
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except NameError:  # an annotation of a name that only a type checker knows
        return {}


def signature_of(make: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a class or function, with annotations that are texts evaluated.

    `from __future__ import annotations` makes texts of all. One of a name that is not there, as
    that of a type checker's import, stays a text.
    """
    signature = inspect.signature(make)
    # Not by `eval_str`, which leaves those of an Equinox class, and all where one cannot be known.
    function: Any = make.__init__ if inspect.isclass(make) else make
    while isinstance(function, functools.partial):
        function = function.func
    names = getattr(inspect.unwrap(function), "__globals__", {})

    def evaluated(parameter: inspect.Parameter) -> inspect.Parameter:
        if not isinstance(parameter.annotation, str):
            return parameter
        try:
            return parameter.replace(annotation=eval(parameter.annotation, names))
        except (NameError, AttributeError, SyntaxError, TypeError):
            return parameter

    return signature.replace(parameters=[*map(evaluated, signature.parameters.values())])


def checked(function: Function) -> Function:
    """Check what a function is given against its annotations, before it is called.

    **Raises:**

    When called: `TypeError` or `ValueError`; see `fitted`.
    """
    signature = inspect.signature(function, eval_str=True)
    kinds = _kinds(signature)

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            given = signature.bind(*arguments, **keywords)
        except TypeError:
            given = None
        if given is None:  # Python's own words name the function, those of `bind` do not
            return function(*arguments, **keywords)
        for name in given.arguments.keys() & kinds.keys():
            given.arguments[name] = fitted(name, given.arguments[name], kinds[name])
        return function(*given.args, **given.kwargs)

    return call  # pyright: ignore[reportReturnType]


def check_given(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Check values against a function's annotations, those that it has, without calling it.

    **Raises:**

    `TypeError` or `ValueError`; see `fitted`.
    """
    kinds = _kinds(inspect.signature(function, eval_str=True))
    for name in given.keys() & kinds.keys():
        fitted(name, given[name], kinds[name])


def _kinds(signature: inspect.Signature) -> dict[str, Any]:
    return {
        p.name: p.annotation
        for p in signature.parameters.values()
        if p.annotation is not p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    }


def _fitted(value: Any, kind: Any) -> Any:
    """The value in Python's own types, or `_WRONG`."""
    kind, arguments = _opened(kind)
    if isinstance(value, np.generic):
        value = value.item()
    if kind is Union:
        fits = (_fitted(value, one) for one in arguments)
        return next((found for found in fits if found is not _WRONG), _WRONG)
    if kind is Literal:
        same = (one for one in arguments if type(one) is type(value) and one == value)
        return next(same, _WRONG)
    if _is_sequence(kind):
        return _fitted_sequence(value, kind, arguments)
    if _is_sensitivity(kind):
        return value if isinstance(value, str) and value in SENSITIVITIES else _WRONG
    if kind in (int, float):
        whole = isinstance(value, int) and not isinstance(value, bool)
        # Not as `abs(value) > …`: NaN is not larger than anything.
        if not (whole or (kind is float and isinstance(value, float))) or not (
            abs(value) <= _LARGEST[kind]
        ):
            return _WRONG
        return kind(value)
    if kind is dict:
        return value if isinstance(value, Mapping) else _WRONG
    if isinstance(kind, type):
        try:
            return value if isinstance(value, kind) else _WRONG
        except TypeError:  # a protocol that cannot be asked
            return value
    return value


def _broken(value: int | float, kind: Any) -> str | None:
    """The rule that a number breaks, in words behind "must be", if its bounds have one."""
    above, least, below, most = (_bound(kind, name) for name in ("gt", "ge", "lt", "le"))
    if (
        (above is None or value > above)
        and (least is None or value >= least)
        and (below is None or value < below)
        and (most is None or value <= most)
    ):
        return None
    if above is below is None and isinstance(value, int):
        if most not in (None, MOST):
            bounds = f"of at most {most}" if least is None else f"from {least} to {most}"
            return f"a whole number {bounds}"
        low = most is None or value <= most
        return f"a whole number of at least {least}" if low else f"at most {most}"
    if above is below is None and None not in (least, most):
        return f"in [{least:g}, {most:g}]"
    words = {"above": above, "at least": least, "below": below, "at most": most}
    return " and ".join(f"{word} {bound:g}" for word, bound in words.items() if bound is not None)


def _bound(kind: Any, name: str) -> Any:
    """The bound of one name in an annotation, or in those among which it lets choose."""
    if get_origin(kind) is Annotated:
        found = [getattr(given, name, None) for given in kind.__metadata__]
    else:
        kind, arguments = _opened(kind)
        found = [_bound(one, name) for one in arguments] if kind is Union else []
    return next((bound for bound in found if bound is not None), None)


def _fitted_sequence(value: Any, kind: Any, arguments: tuple[Any, ...]) -> Any:
    if not isinstance(value, (list, tuple)):
        return _WRONG
    kinds = arguments or (Any, ...)
    if kind is not tuple or Ellipsis in kinds:
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        return _WRONG
    found = tuple(map(_fitted, value, kinds))
    return _WRONG if any(entry is _WRONG for entry in found) else found


def _opened(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """What an annotation is of, and its arguments."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _opened(arguments[0])
    if kind is None:
        return types.NoneType, ()
    return (Union if origin is types.UnionType else origin or kind), arguments


def _types(kind: Any) -> tuple[type, ...]:
    """The types of values among which an annotation may still refuse one."""
    kind, arguments = _opened(kind)
    if kind is Union:
        return tuple(one for argument in arguments for one in _types(argument))
    if kind is Literal:
        return tuple(map(type, arguments))
    if _is_sequence(kind):
        return list, tuple
    if _is_sensitivity(kind):
        return (str,)
    return (int, float) if kind is float else (kind,)


def _said(kind: Any) -> str:
    """What an annotation allows, in words behind "must be"."""
    kind, arguments = _opened(kind)
    if kind is Union:
        kinds = [one for one in arguments if one is not int or float not in arguments]
        return " or ".join(map(_said, kinds))
    if kind is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    if _is_sequence(kind):
        if kind is tuple and arguments and Ellipsis not in arguments:
            return f"a list of {len(arguments)} ({', '.join(map(_said, arguments))})"
        return f"a list, each of it {_said(arguments[0])}" if arguments else "a list"
    if _is_sensitivity(kind):
        return "one of " + ", ".join(SENSITIVITIES)
    if kind in _WORDS:
        return _WORDS[kind]
    if isinstance(kind, type) and issubclass(kind, PurePath):
        return "a path"
    return f"a {kind.__name__.split('.')[-1]}" if isinstance(kind, type) else "a value of JSON"


def _is_sequence(kind: Any) -> bool:
    return kind in (list, tuple, Sequence)


def _is_sensitivity(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, AbstractSensitivity)
