"""Checks of sizes and counts: an error names the setting, its value and the rule."""

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


def check_sizes(**sizes: int) -> None:
    """Raise `ValueError` for a size that is not a whole number of at least 1."""
    check_counts(1, **sizes)
