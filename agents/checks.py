"""Checks of settings: an error names the setting, its value and the rule."""

from collections.abc import Callable
from typing import Any


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
