"""Checks of settings: an error names the setting, its value and the rule."""

from collections.abc import Callable
from typing import Any


def check_counts(least: int, **counts: Any) -> None:
    """Check that settings are whole numbers of a least size.

    **Arguments:**

    - `least`: the smallest number that is allowed.
    - `counts`: settings by name.

    **Raises:**

    `ValueError` for the first that is not.
    """
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"`{name}` (={value!r}) must be a whole number of at least {least}.")


def check_numbers(rule: str, holds: Callable[[Any], bool], **numbers: Any) -> None:
    """Check that settings keep a rule.

    **Arguments:**

    - `rule`: in words, after "must be".
    - `holds`: whether a value keeps it.
    - `numbers`: settings by name.

    **Raises:**

    `ValueError` for the first that does not.
    """
    for name, value in numbers.items():
        if not holds(value):
            raise ValueError(f"`{name}` (={value}) must be {rule}.")


def check_kind(kind: type, rule: str, **settings: Any) -> None:
    """Check that settings are of a kind.

    **Arguments:**

    - `kind`: the class.
    - `rule`: in words, after "must be".
    - `settings`: settings by name.

    **Raises:**

    `TypeError` for the first that is not.
    """
    for name, value in settings.items():
        if not isinstance(value, kind):
            raise TypeError(f"`{name}` (={value!r}) must be {rule}.")
