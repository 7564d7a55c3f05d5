"""What is said of a carry whose sensitivity is another memory's."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from scan.trees import built, first_difference
from zoo.memory import AbstractMemory, Carry


@contextmanager
def explained(memory: AbstractMemory, carry: Carry) -> Iterator[None]:
    """Raise `ValueError` where something fails and the sensitivity is another memory's.

    Only then, because to know its own a memory traces a step.
    """
    try:
        yield
    except Exception as error:
        expected = jax.eval_shape(memory.rtrl_init)
        if built(carry[1]) == built(expected):
            raise
        got, own = first_difference(carry[1], expected)
        raise ValueError(
            f"`carry` (whose sensitivity has {got}) must hold one of this {type(memory).__name__}"
            f"(inputs={memory.inputs}, hidden={memory.hidden}), which has {own} there, as "
            "`rtrl_init()` does."
        ) from error
