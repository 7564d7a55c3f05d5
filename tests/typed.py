"""Annotated shapes and dtypes, checked while tests run."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jaxtyping
from beartype import beartype
from jaxtyping import jaxtyped


def check_annotations(packages: list[str]) -> None:
    """Have beartype check every annotation of packages that are still to be imported.

    jaxtyping's own decorator binds a call's arguments and checks them three times, and writes two
    functions anew for each that another function makes: a tenth of the suite's time. Its hook looks
    the decorator up where a function is made, and finds `checked` for what those packages define.
    """

    def decorator(fn: Any = None, *, typechecker: Any = None) -> Any:
        if fn is None:
            return functools.partial(decorator, typechecker=typechecker)
        ours = str(getattr(fn, "__module__", "")).partition(".")[0] in packages
        # beartype refuses an annotation in quotes of a name that only type checkers import.
        if not ours or not inspect.isfunction(fn) or str in map(type, fn.__annotations__.values()):
            return jaxtyped(fn, typechecker=typechecker)
        return checked(fn)

    jaxtyping.jaxtyped = decorator
    jaxtyping.install_import_hook(packages, "beartype.beartype")


def checked(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Check what a function is given and returns, with names of axes that are of one call."""
    typed = beartype(fn)
    if typed is fn:  # nothing is annotated, or all by `Any`
        return fn
    names = jaxtyped("context")

    @functools.wraps(fn)
    def call(*args, **kwargs):
        if jaxtyping.config.jaxtyping_disable:
            return fn(*args, **kwargs)
        with names:
            return typed(*args, **kwargs)

    return call
