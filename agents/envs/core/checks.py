"""Checks of constructors' arguments that several environments share."""

import math
from typing import Any

from zoo.parts.checks import shown


def check_integer(argument: str, value: Any) -> int:
    """Check that a constructor's argument is an integer.

    **Arguments:**

    - `argument`: its name, for the message.
    - `value`: what was given.

    **Returns:**

    The value as an `int`.

    **Raises:**

    `TypeError` if it is not an integer (a `bool` is none).
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"`{argument}` (={shown(value)}) must be a whole number.")
    return int(value)


def check_at_least(argument: str, value: Any, least: int) -> int:
    """Check that a constructor's argument is an integer of a least size.

    **Arguments:**

    - `argument`: its name, for the message.
    - `value`: what was given.
    - `least`: the smallest integer that is allowed.

    **Returns:**

    The value as an `int`.

    **Raises:**

    `TypeError` if it is not an integer, `ValueError` if it is too small.
    """
    integer = check_integer(argument, value)
    if integer < least:
        raise ValueError(f"`{argument}` (={shown(value)}) must be at least {least}.")
    return integer


def check_number(argument: str, value: Any, least: float, most: float = math.inf) -> float:
    """Check that a constructor's argument is a finite number within bounds.

    **Arguments:**

    - `argument`: its name, for the message.
    - `value`: what was given.
    - `least`: the smallest number that is allowed.
    - `most`: the largest one.

    **Returns:**

    The value as a `float`.

    **Raises:**

    `TypeError` if it is not a number (a `bool` is none), `ValueError` if it is out of bounds.
    """
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(f"`{argument}` (={shown(value)}) must be a number.")
    if not (math.isfinite(value) and least <= value <= most):
        bound = f"from {least:g} to {most:g}" if most < math.inf else f"at least {least:g}"
        raise ValueError(f"`{argument}` (={shown(value)}) must be finite and {bound}.")
    return float(value)
