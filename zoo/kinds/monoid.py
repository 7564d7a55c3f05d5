"""Cells from a monoid: an associative operator on memories."""

from abc import abstractmethod
from typing import Any

import jax
from jaxtyping import Array, Bool, Float

import rtrl
import scan
from zoo.cell import AbstractCell
from zoo.memory import State


class AbstractMonoidCell(AbstractCell):
    """A memoroid: inputs are lifted to elements of a monoid, and the state is their product.

    A cell states `lift`, an associative `combine`, its neutral element as `init_state`, and
    `readout`. The step, the scan (a loop on a CPU, a tree of depth log time elsewhere, resettable
    by `scan.resettable`) and both forms of RTRL come with it.

    Sensitivities are dense, for small states, unless the cell says by `structure` that its entries
    do not act on each other. What is linear entry by entry is better stated as a
    `zoo.AbstractLinearCell`, whose scan has an adjoint of its own.

    Source: *Recurrent Reinforcement Learning with Memoroids*, Morad et al. (2024), section 3.
    """

    @abstractmethod
    def lift(self, x: Float[Array, " inputs"]) -> State:
        """The element of one input.

        **Arguments:**

        - `x`: the input, shape `[inputs]`.

        **Returns:**

        A pytree like the state.
        """

    @abstractmethod
    def combine(self, earlier: State, later: State) -> State:
        """The product of two elements; associative, with `init_state()` as neutral element.

        **Arguments:**

        - `earlier`, `later`: elements, without a time axis.

        **Returns:**

        An element.
        """

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Dense."""
        return rtrl.Dense()

    def update(self, state: State, x: Float[Array, " inputs"]) -> State:
        """The state, combined with the lifted input."""
        return self.combine(state, self.lift(x))

    def states(
        self,
        parameters: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> State:
        cell, initial = parameters, parameters.init_state()

        def in_a_loop(state, elements):
            return scan.sequential(cell.combine, state, elements, begin, initial=initial)[1]

        def in_a_tree(state, elements):
            combine = jax.vmap(cell.combine)
            return scan.associative(combine, elements, begin, initial=state)

        elements = jax.vmap(cell.lift)(xs)
        return scan.loop_or_tree(in_a_loop, in_a_tree, state, elements, method=method)
