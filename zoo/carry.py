"""What is said of a carry whose sensitivity is another memory's."""

from collections.abc import Callable
from typing import Any

import jax

from rtrl.rows import looked_up
from rtrl.segment import check_carried_sensitivity
from zoo.memory import AbstractMemory, Carry, named


def carried_on(
    memory: AbstractMemory, carry: Carry, segment: Callable[[], tuple[Carry, Any]]
) -> tuple[Carry, Any]:
    """Return what `segment` does, the next carry and more.

    **Raises:**

    `ValueError` where it fails, and the sensitivity in `carry` is another memory's. Only then,
    because to know its own a memory traces a step.
    """
    try:
        return segment()
    except Exception as error:
        found = jax.eval_shape(looked_up, carry[1])  # it may lie in a table
        own = jax.eval_shape(memory.rtrl_init)
        check_carried_sensitivity(found, own, f"this {named(memory)}", "rtrl_init()", error)
        raise
