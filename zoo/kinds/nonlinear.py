"""Recurrences that are nonlinear in the state."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

import scan
from scan.programs import is_plain
from zoo.cell import AbstractCell
from zoo.memory import State
from zoo.parts import real_dtype


class AbstractNonlinearCell(AbstractCell):
    """Nonlinear in the state: scanned one step after another."""

    @property
    @abstractmethod
    def coupling(self) -> str:
        """`"units"` where no unit acts on another, else `"dense"`; see `scan.nonlinear`."""

    def init_state(self) -> State:
        return jnp.zeros(self.hidden, real_dtype(self))

    def states(
        self,
        parameters: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> State:
        if scan.check_method(method, ("auto", "sequential", "newton")) == "newton":
            options = {"coupling": self.coupling}
            return solved(scan.newton, updated, parameters, state, xs, begin, **options)[0]
        if method == "auto" and self.coupling == "units" and is_of_units(state):
            return solved(scan.nonlinear, updated, parameters, state, xs, begin)
        if method == "auto":
            return _in_turn_or_known(parameters, state, xs, begin)
        initial = parameters.init_state()
        return scan.sequential(parameters.update, state, xs, begin, initial=initial)[1]


def _in_turn_or_known(
    cell: Any, state: State, xs: Array, begin: Bool[Array, " time"] | None
) -> State:
    """The states of a dense cell: the loop that autodiff goes through or, where another is faster
    than that, one with an adjoint of its own."""
    arrays, static = eqx.partition(cell, eqx.is_array)

    def of_arrays(arrays, state, x):
        return updated(eqx.combine(arrays, static), state, x)

    def in_turn(arrays, state, xs, begin):
        step = scan.hoisted(of_arrays, arrays, state, xs)
        initial = eqx.combine(arrays, static).init_state()
        return scan.sequential(step, state, xs, begin, initial=initial)[1]

    def known(arrays, state, xs, begin):
        cell = eqx.combine(arrays, static)
        return solved(scan.nonlinear, updated, cell, state, xs, begin, coupling="dense")

    given = scan.vary_together(arrays, state, xs, begin)
    real = all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(state))
    if not (real and is_plain(of_arrays, *given[:3])):
        return in_turn(*given)
    return scan.loop_or_tree(in_turn, known, *given)


def solved(
    method: Callable[..., Any],
    update: Callable[[Any, State, Array], State],
    cell: Any,
    state: State,
    xs: Array,
    begin: Bool[Array, " time"] | None,
    **options: Any,
) -> Any:
    """A cell's states by a scan that has a gradient of its own.

    **Arguments:**

    - `method`: `scan.nonlinear` or `scan.newton`.
    - `update`: one step, `(cell, state, x) -> state`.
    - `cell`: the cell.
    - `state`, `xs`, `begin`: of the segment.
    - `options`: of the method.

    **Returns:**

    What `method` returns.
    """
    # All arrays are arguments, integers and keys too. The step is not differentiated itself, and a
    # function that holds a traced array has no hash that outlives the trace: under jit, grad or a
    # scan around this one, it would leak.
    arrays, static = eqx.partition(cell, eqx.is_array)
    return method(
        lambda arrays, state, x: update(eqx.combine(arrays, static), state, x),
        arrays,
        state,
        xs,
        begin,
        initial=cell.init_state(),
        **options,
    )


def is_of_units(state: State) -> bool:
    """Whether a state's leaves are real and of one shape, as `scan.nonlinear` wants its units."""
    leaves = jax.tree.leaves(state)
    real = all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves)
    return real and len({leaf.shape for leaf in leaves}) == 1


def updated(cell: Any, state: State, x: Array) -> State:
    """`cell.update(state, x)`: a step as a function of the cell."""
    return cell.update(state, x)
