"""Arguments that hold several numbers, as lists or arrays: taken as either, or refused by name."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from zoo.annotations import fitted
from zoo.parts.checks import shown


def as_array(name: str, value: Any, kinds: str, rule: str) -> np.ndarray:
    """Give an argument as an array.

    **Arguments:**

    - `name`, `value`: the argument: numbers, one or nested in sequences, or an array of them.
    - `kinds`: NumPy's letters for the kinds of numbers that are allowed.
    - `rule`: what is allowed, in words behind "must be".

    **Raises:**

    `TypeError` for numbers of another kind, or rows of unequal length.
    """
    try:
        found = np.asarray(value)
    except ValueError:  # rows of unequal length
        found = None
    if found is None or found.dtype.kind not in kinds:
        raise TypeError(f"`{name}` (={shown(value)}) must be {rule}.")
    return found


def as_whole(name: str, value: Any) -> tuple[int, ...]:
    """Give whole numbers, in a sequence or an array of one axis, as a tuple.

    **Raises:**

    `TypeError` or `ValueError` for something else, such as a mask.
    """
    is_array = isinstance(value, np.ndarray | jax.Array | range)
    return fitted(name, np.asarray(value).tolist() if is_array else value, Sequence[int])
