"""How a cell's one definition becomes its four forms."""

from abc import abstractmethod

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

import rtrl
import scan
from zoo._segment import rtrl_segment
from zoo.memory import AbstractMemory, Begin, Carry, Sensitivity, State
from zoo.parts import real_dtype


class AbstractCell(AbstractMemory):
    """A cell states its mathematics once, and gets the four forms of `zoo.AbstractMemory`.

    A concrete cell defines `init_state`, `update` and `readout`. The classes between this one and
    a cell (`AbstractLinearCell`, `AbstractDiagonalCell`, `AbstractDenseCell`) define the kind of
    recurrence: `structure`, `recurrence_parameters` and `states`.
    """

    @abstractmethod
    def update(self, state: State, x: Float[Array, " inputs"]) -> State:
        """One step of the recurrence: all that RTRL differentiates.

        **Arguments:**

        - `state`: the previous state.
        - `x`: the input, shape `[inputs]`.

        **Returns:**

        The next state.
        """

    @abstractmethod
    def readout(self, state: State, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """The output of a step: gates, projections and norms after the recurrence.

        **Arguments:**

        - `state`: the state after `x`.
        - `x`: the input, shape `[inputs]`.

        **Returns:**

        `y`, shape `[outputs]`.
        """

    @property
    @abstractmethod
    def structure(self) -> rtrl.AbstractStructure:
        """How the recurrence's units depend on one another."""

    @abstractmethod
    def recurrence_parameters(self) -> PyTree:
        """The parameters of the parameters, as functions of the cell's own.

        RTRL keeps one sensitivity for each of these; ordinary autodiff takes the gradient from
        them to the cell's parameters. It is the cell itself unless a smaller set will do.

        **Returns:**

        A pytree.
        """

    @abstractmethod
    def states(
        self,
        parameters: PyTree,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> State:
        """The states after every step, as a function of the recurrence's parameters.

        **Arguments:**

        - `parameters`: as `recurrence_parameters()` returns it.
        - `state`: the state carried in.
        - `xs`: inputs, shape `[time, inputs]`.
        - `begin`: shape `[time]`, or `None`.
        - `method`: of the scan; see `scan`.

        **Returns:**

        The states, with a leading time axis.
        """

    def step(
        self, state: State, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[State, Float[Array, " outputs"]]:
        """See `zoo.AbstractMemory.step`."""
        self._check(x.shape, (self.inputs,), "x")
        state = self.update(scan.reset(begin, self.init_state(), state), x)
        return state, self.readout(state, x)

    def scan(
        self,
        state: State,
        xs: Float[Array, "..."],
        begin: Bool[Array, "..."] | None = None,
        *,
        method: str = "auto",
    ) -> tuple[State, Float[Array, "time outputs"]]:
        """See `zoo.AbstractMemory.scan`.

        - `method`: `"auto"`, or how the recurrence is computed. Linear cells know the methods of
          `scan.linear`; nonlinear ones `"sequential"`, the loop with plain autodiff, and
          `"newton"` (see `scan.newton`). `"auto"` is the loop for them, with the gradient of
          `scan.nonlinear` where units do not act on each other.

        **Raises:**

        `ValueError` for shapes that do not fit, and for a method that the cell does not have.
        """
        self._check_sequence(xs, begin)
        return self._run(self.recurrence_parameters(), state, xs, begin, method)[:2]

    def rtrl_init(self) -> Sensitivity:
        """See `zoo.AbstractMemory.rtrl_init`."""
        parameters, state = self.recurrence_parameters(), self.init_state()
        x = jax.ShapeDtypeStruct((1, self.inputs), real_dtype(self))

        def run(parameters, state, xs):
            return _last(self.states(parameters, state, xs, None))

        return rtrl.init(self.structure, run, parameters, state, x)

    def rtrl_step(
        self, carry: Carry, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[Carry, Float[Array, " outputs"]]:
        """See `zoo.AbstractMemory.rtrl_step`."""
        self._check(x.shape, (self.inputs,), "x")
        carry, ys = self._segment(carry, x[None], jnp.asarray(begin)[None], products=True)
        return carry, ys[0]

    def rtrl_scan(
        self, carry: Carry, xs: Float[Array, "..."], begin: Bool[Array, "..."] | None = None
    ) -> tuple[Carry, Float[Array, "time outputs"]]:
        """See `zoo.AbstractMemory.rtrl_scan`."""
        self._check_sequence(xs, begin)
        return self._segment(carry, xs, begin, products=False)

    def _segment(self, carry, xs, begin, *, products):
        def follow(parameters, state, known, begin):
            xs, states = known
            return _last(self.surrogate_states(parameters, state, xs, begin, states))

        return rtrl_segment(
            self.structure,
            self._run,
            follow,
            self.recurrence_parameters(),
            self.init_state(),
            carry,
            xs,
            begin,
            products=products,
        )

    def surrogate_states(
        self,
        parameters: PyTree,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        states: State,
    ) -> State:
        """`states`, with the derivatives that the sensitivities follow: the exact ones by default.

        **Arguments:** see `states`, and

        - `states`: what `states` returned. A recurrence that is a loop need not run it again.

        **Returns:**

        The states, with the values that `states` returns.
        """
        return self.states(parameters, state, xs, begin)

    def _run(self, parameters, state, xs, begin, method="auto"):
        """The last state, the outputs, and all states."""
        states = self.states(parameters, state, xs, begin, method)
        return _last(states), jax.vmap(self.readout)(states, xs), states


def _last(states: State) -> State:
    return jax.tree.map(lambda h: h[-1], states)
