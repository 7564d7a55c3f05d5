"""What is said of a carry whose sensitivity is another memory's."""

from collections.abc import Callable
from typing import Any

import jax

from scan.trees import built, first_difference
from zoo.memory import AbstractMemory, Carry


def carried_on(
    memory: AbstractMemory, carry: Carry, segment: Callable[[], tuple[Carry, Any]]
) -> tuple[Carry, Any]:
    """Return what `segment` does, the next carry and more.

    **Raises:**

    `ValueError` where it fails, or its sensitivity has other shapes, and the one in `carry` is
    another memory's. Only then, because to know its own a memory traces a step.
    """
    try:
        after, ys = segment()
    except Exception as error:
        _check(memory, carry, error)
        raise
    if built(after[1]) != built(carry[1]):
        _check(memory, carry, None)
    return after, ys


def _check(memory: AbstractMemory, carry: Carry, cause: Exception | None) -> None:
    expected = jax.eval_shape(memory.rtrl_init)
    if built(carry[1]) == built(expected):
        return
    got, own = first_difference(carry[1], expected)
    raise ValueError(
        f"`carry` (whose sensitivity has {got}) must hold one of this {type(memory).__name__}"
        f"(inputs={memory.inputs}, hidden={memory.hidden}), which has {own} there, as "
        "`rtrl_init()` does."
    ) from cause
