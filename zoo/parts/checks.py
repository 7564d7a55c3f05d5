"""Checks of sizes and counts: an error names the setting, its value and the rule."""

import difflib
from collections.abc import Iterable
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


def check_sizes(**sizes: int) -> None:
    """Raise `ValueError` for a size that is not a whole number of at least 1."""
    check_counts(1, **sizes)


def check_heads(hidden: int, heads: int) -> None:
    """Raise `ValueError` for a number of heads that is no size, or does not divide `hidden`."""
    check_sizes(heads=heads)
    if hidden % heads:
        raise ValueError(f"`heads` (={heads}) must divide `hidden` (={hidden}).")


def keys_of_a_head(inputs: int, hidden: int, keys: int | None, heads: int) -> int:
    """The width of a head's keys, that of its values by default; `ValueError` for wrong sizes."""
    check_sizes(inputs=inputs, hidden=hidden)
    check_heads(hidden, heads)
    keys = hidden // heads if keys is None else keys
    check_sizes(keys=keys)
    return keys


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Ask for the nearest of the names there are, behind an error; nothing where none is near."""
    near = difflib.get_close_matches(str(name), list(known), n=3, cutoff=0.4)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def shown(value: Any, width: int = 60) -> str:
    """Write a value in one line for an error, however large it is."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no whole number of more than some thousand digits
        text = f"{type(value).__name__} of {value.bit_length()} bits"
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= width else f"{text[: width - 1]}…"
