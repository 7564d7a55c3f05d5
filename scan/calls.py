"""Functions of others, and whether they take what they are called with."""

import inspect
from collections.abc import Callable
from typing import Any


def misfit(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> str:
    """The signature of a function that does not take such arguments, to tell in an error.

    **Returns:**

    An empty text where it takes them, and of a function that has no signature, as some of C.
    """
    try:
        signature = inspect.signature(function)
    except ValueError:
        return ""
    try:
        signature.bind(*arguments, **keywords)
    except TypeError:
        return str(signature)
    return ""
