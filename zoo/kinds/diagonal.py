"""Nonlinear recurrences whose units do not talk to each other."""

from typing import Any

from jaxtyping import Array, Bool

import rtrl
import scan
from zoo.kinds.nonlinear import AbstractNonlinearCell, is_of_units, solved, updated
from zoo.memory import State


class AbstractDiagonalCell(AbstractNonlinearCell):
    """Nonlinear, but every unit depends on its own past only: see `rtrl.Diagonal`.

    A cell states `update`, and an `init_state` where the state is not one of `hidden` real numbers.
    """

    @property
    def structure(self) -> rtrl.AbstractStructure:
        return rtrl.Diagonal()

    @property
    def coupling(self) -> str:
        return "units"

    def surrogate_states(
        self,
        parameters: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        states: State,
    ) -> State:
        if not is_of_units(state):
            return self.states(parameters, state, xs, begin)
        # The same derivatives as those of `states`, without running the loop again.
        return solved(scan.nonlinear, updated, parameters, state, xs, begin, states=states)
