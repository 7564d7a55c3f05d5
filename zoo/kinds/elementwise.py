"""What the kinds of linear recurrence share: one scan, and the states that it is known to have."""

from abc import abstractmethod
from typing import Any

from jaxtyping import Array, Bool

import scan
from zoo.cell import AbstractCell
from zoo.memory import State


class AbstractElementwiseCell(AbstractCell):
    """Linear, entry by entry: `h_t = a_t ⊙ h_{t-1} + b_t`. A kind states `along`."""

    @abstractmethod
    def along(self, parameters: Any, state: State, xs: Array) -> tuple[Array, Array]:
        """The coefficients of a sequence.

        **Arguments:**

        - `parameters`: as `recurrence_parameters()` returns them.
        - `state`: the state carried in.
        - `xs`: inputs, shape `[time, inputs]`.

        **Returns:**

        `(a, b)`, as `scan.linear` takes them.
        """

    def states(
        self,
        parameters: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> State:
        a, b = self.along(parameters, state, xs)
        return scan.linear(a, b, state, begin, method=method)

    def surrogate_states(
        self,
        parameters: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        states: State,
    ) -> State:
        a, b = self.along(parameters, state, xs)
        return scan.linear(a, b, state, begin, states=states)


def next_state(a: Array, b: Array, state: State) -> State:
    """`a ⊙ h + b` of one step, in the state's own dtype."""
    return a.astype(state.dtype) * state + b.astype(state.dtype)
