"""Checks of counts: an error names the setting, its value and the rule."""

from typing import Any

import numpy as np

MOST = 2**31 - 1  # what JAX's usual integers hold


def check_counts(least: int, **counts: Any) -> None:
    """Check that settings are whole numbers of a least size, and of at most 31 bits.

    **Arguments:**

    - `least`: the smallest number that is allowed.
    - `counts`: settings by name.

    **Raises:**

    `ValueError` for the first that is not.
    """
    for name, value in counts.items():
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or value < least:
            raise ValueError(
                f"`{name}` (={shown(value)}) must be a whole number of at least {least}."
            )
        if value > MOST:
            raise ValueError(f"`{name}` (={shown(value)}) must be at most {MOST}.")


def shown(value: Any, width: int = 60) -> str:
    """Write a value in one line for an error, however large it is."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no whole number of more than some thousand digits
        text = f"{type(value).__name__} of {value.bit_length()} bits"
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= width else f"{text[: width - 1]}…"
