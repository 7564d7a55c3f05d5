"""A cell behind a memoryless front, with credit through both."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

import rtrl
from zoo.cell import AbstractCell
from zoo.memory import AbstractStepper, Begin, Cache, State
from zoo.parts import check_sizes, real_dtype
from zoo.parts.checks import shown


class Fronted(AbstractCell):
    """A cell made of a memoryless front and a cell: `cell(front(x))`.

    The front is a part of the recurrence: RTRL follows the state's dependence on its parameters
    too, and its gradient is that of the whole past for front and cell alike. A front outside of a
    memory, such as an encoder, learns from the present segment only.

    What is kept for the front are its parameters once for each unit of the cell, and the same for
    the cell as without it: for 96 complex units and an encoder from 6 numbers to 64 that is 344 kB
    in float32 beside 50. For that each unit is run by itself: a cell of one's own takes a shape
    with the number of units off its arrays there, and a number that is made of it, such as a scale
    of 1/√n, from `hidden`. Of cells whose units act on one another, and of those with a matrix for
    a state, everything is kept for the front that `rtrl.Dense` keeps.
    """

    front: Callable[[Array], Array]
    cell: AbstractCell
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, front: Callable[[Array], Array], cell: Any, *, inputs: int):
        """**Arguments:**

        - `front`: an Equinox module, called on one `x`; gives the cell's input.
        - `cell`: a cell of the zoo, or one of your own. Not a `zoo.Stack` or another memory that is
          made of several.
        - `inputs`: width of `x`.

        **Raises:**

        `TypeError` or `ValueError` naming the argument, its value and the rule.
        """
        check_sizes(inputs=inputs)
        if not isinstance(cell, AbstractCell):
            raise TypeError(
                f"`cell` (a {type(cell).__name__}) must be a zoo.AbstractCell: what is made of "
                "several memories has its own way to carry credit."
            )
        if isinstance(cell, Fronted):
            raise TypeError("`cell` (a Fronted) has a front already: make one front of both.")
        x = jax.ShapeDtypeStruct((inputs,), real_dtype(cell))
        try:
            seen = jax.eval_shape(front, x)
        except Exception as error:
            raise ValueError(
                f"`front` (={shown(front)}) must take one `x` of `inputs` (={inputs}) numbers, at "
                f"which it fails: {error}"
            ) from error
        found = jax.tree.map(lambda x: x.shape, seen)
        if found != (cell.inputs,):
            raise ValueError(
                f"`front` gives shape {found}, which must be the cell's ({cell.inputs},)."
            )
        if jnp.issubdtype(seen.dtype, jnp.complexfloating):
            raise ValueError(f"`front` gives {seen.dtype}, which must be real.")
        self.front, self.cell = front, cell
        self.inputs, self.hidden = inputs, cell.hidden

    @property
    def outputs(self) -> int:
        return self.cell.outputs

    @property
    def structure(self) -> rtrl.AbstractStructure:
        inner = self.cell.structure
        if isinstance(inner, rtrl.Dense | rtrl.UORO | rtrl.SnAp0):
            return inner  # of any parameters, whoever they act on
        # SnAp-1, RFLO and e-prop look diagonal too, but only under their own derivatives.
        exact = isinstance(getattr(self.cell, "sensitivity", rtrl.Exact()), rtrl.Exact)
        return rtrl.Shared(inner, by_unit=exact and isinstance(inner, rtrl.Diagonal))

    def init_state(self) -> State:
        return self.cell.init_state()

    @property
    def _by_unit(self) -> bool:
        structure = self.structure
        return isinstance(structure, rtrl.Shared) and structure.by_unit

    def recurrence_parameters(self) -> rtrl.Parts:
        """Those of the cell, and the front; and what episodes begin with, where units run alone."""
        own = self.cell.recurrence_parameters()
        alone = self._by_unit and isinstance(own, AbstractCell)
        return rtrl.Parts(own, self.front, self.cell.init_state() if alone else None)

    def _seen(self, x: Array) -> Array:
        """What the cell sees, in its own precision."""
        return self.cell.check_input(self.front(x))

    def _all_seen(self, front: Any, xs: Array) -> Array:
        return self.cell.check_inputs(jax.vmap(front)(xs), None)[0]

    def update(self, state: State, x: Float[Array, " inputs"]) -> State:
        return self.cell.update(state, self._seen(x))

    def surrogate_update(self, state: State, x: Float[Array, " inputs"]) -> State:
        return self.cell.surrogate_update(state, self._seen(x))

    def readout(self, state: State, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        return self.cell.readout(state, self._seen(x))

    def stepper(self) -> AbstractStepper:
        return _FrontedStepper(self, self.cell.stepper())

    def states(
        self,
        parameters: rtrl.Parts,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> State:
        seen = self._all_seen(parameters.shared, xs)
        return self.cell.states(_beginning(parameters), state, seen, begin, method)

    @property
    def has_chunks(self) -> bool:
        return self.cell.has_chunks

    def scan_in_chunks(
        self, state: State, xs: Array, begin: Bool[Array, " time"] | None
    ) -> tuple[State, Array]:
        return self.cell.scan_in_chunks(state, self._all_seen(self.front, xs), begin)

    def segment_states(
        self, parameters: rtrl.Parts, state: State, xs: Array, begin: Bool[Array, " time"] | None
    ) -> State:
        seen = self._all_seen(parameters.shared, xs)
        return self.cell.segment_states(parameters.own, state, seen, begin)

    def surrogate_states(
        self,
        parameters: rtrl.Parts,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        states: State,
    ) -> State:
        seen = self._all_seen(parameters.shared, xs)
        if self._by_unit:
            # Run unit by unit, where the states of all units are of no use.
            return self.cell.states(_beginning(parameters), state, seen, begin)
        return self.cell.surrogate_states(parameters.own, state, seen, begin, states)


class _FrontedStepper(AbstractStepper):
    """The stepper of the cell, behind the front."""

    memory: Fronted
    cell: AbstractStepper

    def cache(self, state: State) -> Cache:
        return self.cell.cache(state)

    def step(
        self, cache: Cache, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[Cache, Float[Array, " outputs"]]:
        return self.cell.step(cache, self.memory.front(self.memory.check_input(x)), begin)

    def state(self, cache: Cache) -> State:
        return self.cell.state(cache)


class _Beginning(eqx.Module):
    """A cell that begins an episode with a state it is given, and is like another in all else.

    A cell's own `init_state` is that of all its units, also where its arrays are those of one.
    """

    cell: AbstractCell
    begins_with: State

    def init_state(self) -> State:
        return self.begins_with

    def __getattr__(self, name: str) -> Any:
        if name in ("cell", "begins_with"):  # of an instance that is being made
            raise AttributeError(name)
        return getattr(self.cell, name)


def _beginning(parameters: rtrl.Parts) -> PyTree:
    """The cell's parameters, as what begins as is said, where something is."""
    if parameters.constant is None:
        return parameters.own
    return _Beginning(parameters.own, parameters.constant)
