"""Checks of sizes, counts, shapes and keys: an error names the setting, its value and the rule."""

import difflib
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from scan.counts import MOST as MOST
from scan.counts import check_counts as check_counts
from scan.counts import shown as shown


def check_sizes(**sizes: int) -> None:
    """Raise `ValueError` for a size that is not a whole number of at least 1."""
    check_counts(1, **sizes)


def check_shapes(shape: tuple[int, ...], of: str, **arrays: Any) -> None:
    """Raise `ValueError` for the first array that does not have a shape, which is that of `of`."""
    for name, array in arrays.items():
        if np.shape(array) != shape:
            found = f"`{name}` (shape {np.shape(array)})"
            raise ValueError(f"{found} must have the shape of {of}, {shape}.")


def as_array(name: str, x: Any, dtype: Any = None) -> Array:
    """An argument as an array; `TypeError` for what cannot be one, such as a text or `None`."""
    try:
        return jnp.asarray(x, dtype)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"`{name}` (={shown(x)}) must be an array of numbers.") from None


def check_key(key: Any) -> None:
    """Raise `TypeError` for what is not one PRNG key, typed or the numbers of one."""
    is_key = False
    if isinstance(key, Array | np.ndarray):
        typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        is_key = key.ndim == 0 if typed else key.ndim == 1 and key.dtype == np.uint32
    if not is_key:
        raise TypeError(f"`key` (={shown(key)}) must be a PRNG key, such as jax.random.key(0).")


def check_heads(hidden: int, heads: int) -> None:
    """Raise `ValueError` for a number of heads that is no size, or does not divide `hidden`."""
    check_sizes(heads=heads)
    if hidden % heads:
        raise ValueError(f"`heads` (={heads}) must divide `hidden` (={hidden}).")


def check_norm_width(*, heads: int = 1, **widths: int) -> None:
    """Raise `ValueError` where each norm would be of one value, which leaves nothing of it.

    **Arguments:**

    - `heads`: how many norms share each width.
    - `widths`: by the names of the settings; 0 for no layer.
    """
    for name, width in widths.items():
        if heads == 1 and width == 1:
            raise ValueError(f"`{name}` (=1) must be at least 2: the norm of one value is 0.")
        if 0 < width < 2 * heads:
            raise ValueError(
                f"`heads` (={heads}) must leave each at least two of `{name}` (={width}) values: "
                "the norm of one value is 0."
            )


def keys_of_a_head(inputs: int, hidden: int, keys: int | None, heads: int) -> int:
    """The width of a head's keys, that of its values by default; `ValueError` for wrong sizes."""
    check_sizes(inputs=inputs, hidden=hidden)
    check_heads(hidden, heads)
    keys = hidden // heads if keys is None else keys
    check_sizes(keys=keys)
    return keys


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Ask for the nearest of the names there are, behind an error; nothing where none is near."""
    near = nearest(str(name), known, cutoff=0.4)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def nearest(name: str, known: Iterable[str], *, cutoff: float) -> list[str]:
    """The names that are nearest, three at most, in letters of either size.

    **Arguments:**

    - `name`: as given.
    - `known`: those there are.
    - `cutoff`: from 0 to 1, how much one has to be like it.
    """
    lower = {one.lower(): one for one in known}
    return [lower[one] for one in difflib.get_close_matches(name.lower(), lower, 3, cutoff)]


def same_definition(one: Any, other: Any) -> bool:
    """Whether two are one, or one definition that was run twice, as a notebook's cell is."""
    name = getattr(one, "__qualname__", "<lambda>")  # a partial function has none
    if one is other or "<lambda>" in name:
        return one is other
    place = getattr(other, "__module__", None), getattr(other, "__qualname__", None)
    return (one.__module__, name) == place
