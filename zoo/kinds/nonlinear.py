"""Recurrences that are nonlinear in the state."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

import rtrl
import scan
from zoo.cell import AbstractCell
from zoo.kinds.choices import check_method
from zoo.memory import State


class AbstractNonlinearCell(AbstractCell):
    """Nonlinear in the state: scanned one step after another."""

    @property
    @abstractmethod
    def coupling(self) -> str:
        """`"units"` where no unit acts on another, else `"dense"`; see `scan.nonlinear`."""

    def recurrence_parameters(self) -> Any:
        """The cell itself."""
        return self

    def states(
        self,
        parameters: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> State:
        """See `zoo.AbstractCell.states`."""
        if check_method(method, ("auto", "sequential", "newton")) == "newton":
            options = {"coupling": self.coupling}
            return _solved(scan.newton, _update, parameters, state, xs, begin, **options)[0]
        if method == "auto" and self.coupling == "units" and _is_of_units(state):
            return _solved(scan.nonlinear, _update, parameters, state, xs, begin)
        initial = parameters.init_state()
        return scan.sequential(parameters.update, state, xs, begin, initial=initial)[1]

    def surrogate_states(
        self,
        parameters: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        states: State,
    ) -> State:
        """See `zoo.AbstractCell.surrogate_states`."""
        if not isinstance(self.structure, rtrl.Diagonal):
            return self.states(parameters, state, xs, begin)
        if not _is_of_units(state):
            update, initial = parameters.surrogate_update, parameters.init_state()
            return scan.sequential(update, state, xs, begin, initial=initial)[1]
        return _solved(
            scan.nonlinear, _surrogate_update, parameters, state, xs, begin, states=states
        )

    def surrogate_update(self, state: State, x: Array) -> State:
        """`update`, with the derivatives that the sensitivities follow.

        **Arguments:** see `zoo.AbstractCell.update`.

        **Returns:**

        The next state.
        """
        return self.update(state, x)


def _update(cell: AbstractNonlinearCell, state: State, x: Array) -> State:
    return cell.update(state, x)


def _surrogate_update(cell: AbstractNonlinearCell, state: State, x: Array) -> State:
    return cell.surrogate_update(state, x)


def _is_of_units(state: State) -> bool:
    """Whether a state's leaves are real and of one shape."""
    leaves = jax.tree.leaves(state)
    real = all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves)
    return real and len({leaf.shape for leaf in leaves}) == 1


def _solved(
    method: Callable[..., Any],
    update: Callable[[Any, State, Array], State],
    cell: Any,
    state: State,
    xs: Array,
    begin: Array | None,
    **options: Any,
) -> Any:
    """A cell's recurrence by a scan that takes the parameters by themselves."""
    parameters, rest = eqx.partition(cell, eqx.is_inexact_array)
    return method(
        lambda parameters, state, x: update(eqx.combine(parameters, rest), state, x),
        parameters,
        state,
        xs,
        begin,
        initial=cell.init_state(),
        **options,
    )
