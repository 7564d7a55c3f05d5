"""What is said of a carry whose sensitivity is another memory's."""

from collections.abc import Callable
from typing import Any

import jax

from rtrl.rows import looked_up
from rtrl.segment import check_carried_sensitivity
from scan.trees import built
from zoo.memory import AbstractMemory, Carry, named


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
    if built(after[1]) != built(_looked_up(carry)):
        _check(memory, carry, None)
    return after, ys


def _looked_up(carry: Carry) -> Any:
    """Shapes of the sensitivity, which may lie in a table."""
    return jax.eval_shape(looked_up, carry[1])


def _check(memory: AbstractMemory, carry: Carry, cause: Exception | None) -> None:
    own = jax.eval_shape(memory.rtrl_init)
    check_carried_sensitivity(_looked_up(carry), own, f"this {named(memory)}", "rtrl_init()", cause)
