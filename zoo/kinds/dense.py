"""Nonlinear recurrences in which every unit may act on every other."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Bool

import rtrl
import scan
from zoo.kinds.choices import check_sensitivity
from zoo.kinds.nonlinear import AbstractNonlinearCell, is_of_units, solved
from zoo.memory import State

Recurrent = Callable[[Array, Array], Array]


class AbstractUnstructuredCell(AbstractNonlinearCell):
    """Any recurrence: what RTRL keeps is as large as state times parameters, or random.

    `sensitivity=rtrl.Exact()` is `rtrl.Dense`, for small cells; `rtrl.UORO()` is unbiased, with one
    number for each of the state and of the parameters; `rtrl.SnAp0()` keeps nothing.
    """

    sensitivity: eqx.AbstractVar[rtrl.AbstractSensitivity]

    def __check_init__(self):
        check_sensitivity(self.sensitivity, self.sensitivities)

    @property
    def sensitivities(self) -> tuple[type[rtrl.AbstractSensitivity], ...]:
        """The choices of `sensitivity` that the cell takes."""
        return (rtrl.Exact, rtrl.UORO, rtrl.SnAp0)

    @property
    def structure(self) -> rtrl.AbstractStructure:
        return self.sensitivity.structure

    @property
    def coupling(self) -> str:
        return "dense"

    def segment_states(
        self, parameters: Any, state: State, xs: Array, begin: Bool[Array, " time"] | None
    ) -> State:
        rule = self.sensitivity
        if not rule.at_every_step:
            return self.states(parameters, state, xs, begin)

        def step(state, x):
            return parameters.surrogate_update(rule.followed(state), x)

        return scan.sequential(step, state, xs, begin, initial=parameters.init_state())[1]


class AbstractDenseCell(AbstractUnstructuredCell):
    """Nonlinear, every unit may depend on every other through products with matrices.

    A cell states `transition`, and with it what its RTRL forms follow across a segment's start:

    | `sensitivity` | follows | numbers kept for a state of n = b · units numbers, P parameters |
    |---|---|---|
    | `rtrl.Exact()` | everything | n P |
    | `rtrl.SnAp1()` | the path from each unit to itself (Menick et al., 2021) | b P |
    | `rtrl.RFLO()` | what the cell keeps without its recurrent products (Murray, 2019) | b P |
    | `rtrl.EProp()` | the same, inside a segment too (Bellec et al., 2020) | b P |
    | `rtrl.SnAp0()` | nothing, inside a segment too: immediate derivatives | 0 |
    | `rtrl.UORO()` | everything, as a random outer product (Tallec & Ollivier, 2018) | n + P |

    Inside a segment the gradient is exact but for e-prop and SnAp-0, so longer segments mean less
    approximation. Leading axes of the parameters that `transition` uses are the units.
    """

    def __check_init__(self):
        # Equinox asks a class before its bases, which would look at it too late.
        check_sensitivity(self.sensitivity, self.sensitivities)
        # What is kept by unit is laid out here already, so that a parameter that does not start
        # with the units is refused when the cell is made.
        if isinstance(self.structure, rtrl.Diagonal):
            jax.eval_shape(self.rtrl_init)

    @property
    def sensitivities(self) -> tuple[type[rtrl.AbstractSensitivity], ...]:
        return (rtrl.Exact, rtrl.SnAp1, rtrl.RFLO, rtrl.EProp, rtrl.SnAp0, rtrl.UORO)

    @abstractmethod
    def transition(self, state: State, x: Array, recurrent: Recurrent) -> State:
        """One step of the recurrence.

        **Arguments:**

        - `state`: the previous state.
        - `x`: the input, shape `[inputs]`.
        - `recurrent`: called as `recurrent(U, h)` for every product of a recurrent matrix
          `[hidden, gates, hidden]` with a function of the state `[hidden]`; returns
          `[hidden, gates]`. The approximations put a product with another derivative here.

        **Returns:**

        The next state.
        """

    def update(self, state: State, x: Array) -> State:
        return self.transition(state, x, rtrl.exact_product)

    def surrogate_update(self, state: State, x: Array) -> State:
        return self.transition(state, x, self.sensitivity.product)

    def surrogate_states(
        self,
        parameters: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        states: State,
    ) -> State:
        if not isinstance(self.structure, rtrl.Diagonal):
            return self.states(parameters, state, xs, begin)
        if not is_of_units(state):
            update, initial = parameters.surrogate_update, parameters.init_state()
            return scan.sequential(update, state, xs, begin, initial=initial)[1]
        # No unit acts on another any more, so the derivatives are those of units. The values stay
        # those of the cell, which are known.
        return solved(
            scan.nonlinear, _surrogate_update, parameters, state, xs, begin, states=states
        )


def _surrogate_update(cell: AbstractDenseCell, state: State, x: Array) -> State:
    return cell.surrogate_update(state, x)
