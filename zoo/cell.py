"""How a cell's one definition becomes its four forms."""

from abc import abstractmethod

import jax
from jaxtyping import Array, Bool, Float, PyTree

import rtrl
import scan
from zoo.carry import carried_on
from zoo.memory import AbstractMemory, Begin, Carry, Sensitivity, State
from zoo.parts import real_dtype


class AbstractCell(AbstractMemory, rtrl.AbstractRecurrence):
    """A cell states its mathematics once, and gets the four forms of `zoo.AbstractMemory`.

    A concrete cell defines `update`, and where they differ from the defaults `init_state`,
    `readout` and `outputs`. The classes between this one and a cell (`AbstractLinearCell`,
    `AbstractDiagonalCell`, `AbstractDenseCell`) define the kind of recurrence: `structure`,
    `recurrence_parameters` and `states`.
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

    def surrogate_update(self, state: State, x: Float[Array, " inputs"]) -> State:
        """`update`, with the derivatives that the sensitivities follow: its own by default.

        **Arguments:**

        - `state`: the previous state.
        - `x`: the input, shape `[inputs]`.

        **Returns:**

        The next state.
        """
        return self.update(state, x)

    def readout(self, state: State, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """The output of a step: gates, projections and norms after the recurrence.

        The state itself by default.

        **Arguments:**

        - `state`: the state after `x`.
        - `x`: the input, shape `[inputs]`.

        **Returns:**

        `y`, shape `[outputs]`.
        """
        return state

    def recurrence_parameters(self) -> PyTree:
        """The parameters of the recurrence, as functions of the cell's own: the cell itself, unless
        a smaller set will do.

        RTRL keeps one sensitivity for each of these; ordinary autodiff takes the gradient from
        them to the cell's parameters.

        **Returns:**

        A pytree.
        """
        return self

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

        - `parameters`: as `recurrence_parameters()` returns them.
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
        x = self.check_input(x)
        state = self.check_state(state)
        state = self.update(scan.reset(begin, self.init_state(), state), x)
        return state, self._outputs(self.readout(state, x))

    def scan(
        self,
        state: State,
        xs: Float[Array, "..."],
        begin: Bool[Array, "..."] | None = None,
        *,
        method: str = "auto",
    ) -> tuple[State, Float[Array, "time outputs"]]:
        """A whole sequence, parallel over time where the recurrence allows it.

        **Arguments:** those of `zoo.AbstractMemory.scan`, and

        - `method`: `"auto"`, or how the recurrence is computed. Linear cells know the methods of
          `scan.linear`; those with `scan_in_chunks` also `"chunks"`, in which the states inside of
          a chunk are never made; nonlinear ones `"sequential"`, the loop with plain autodiff, and
          `"newton"` (see `scan.newton`). `"auto"` is the loop for them, with the gradient of
          `scan.nonlinear` where units do not act on each other, and where a program is not lowered
          for a CPU. Delta rules know those of linear cells but `"kernel"`, as monoids do, and
          memories that keep nothing `"auto"` only.

        **Returns:**

        `(state, ys)`: the state after the last step and the outputs of all steps.

        **Raises:**

        `ValueError` for shapes that do not fit, and for a method that the cell does not have.
        """
        xs, begin = self.check_inputs(xs, begin)
        state = self.check_state(state)

        def by_states(state, xs, begin):
            states = self.states(self.recurrence_parameters(), state, xs, begin, method)
            return self.end_state(states), self._outputs(
                jax.vmap(self.readout)(states, xs), xs.shape[0]
            )

        if not self.has_chunks:
            return by_states(state, xs, begin)
        return scan.chunks_or_states(
            self.scan_in_chunks, by_states, state, xs, begin, method=method
        )

    @property
    def has_chunks(self) -> bool:
        """Whether there is a `scan_in_chunks`."""
        return type(self).scan_in_chunks is not AbstractCell.scan_in_chunks

    def scan_in_chunks(
        self, state: State, xs: Array, begin: Bool[Array, " time"] | None
    ) -> tuple[State, Array]:
        """`scan` without the states of all steps, for cells that can; none by default.

        **Arguments:**

        - `state`: the state carried in.
        - `xs`: inputs, shape `[time, inputs]`.
        - `begin`: shape `[time]`, or `None`.

        **Returns:**

        `(state, ys)`, as `scan`.
        """
        raise NotImplementedError

    def rtrl_init(self) -> Sensitivity:
        x = jax.ShapeDtypeStruct((1, self.inputs), real_dtype(self))

        # `update` is a function of the cell; only `states` takes the recurrence's parameters, which
        # may be functions of the cell's own.
        def after_a_step(parameters, state, xs):
            return self.end_state(self.states(parameters, state, xs, None))

        return rtrl.init(
            self.structure, after_a_step, self.recurrence_parameters(), self.init_state(), x
        )

    def rtrl_step(
        self, carry: Carry, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[Carry, Float[Array, " outputs"]]:
        x = self.check_input(x)
        carry, ys = self._segment(carry, x[None], scan.check_flag(begin)[None], products=True)
        return carry, ys[0]

    def rtrl_scan(
        self, carry: Carry, xs: Float[Array, "..."], begin: Bool[Array, "..."] | None = None
    ) -> tuple[Carry, Float[Array, "time outputs"]]:
        xs, begin = self.check_inputs(xs, begin)
        return self._segment(carry, xs, begin, products=False)

    def _segment(self, carry, xs, begin, *, products):
        carry = self.check_carry(carry)
        parameters = self.recurrence_parameters()
        carry, states = carried_on(
            self,
            carry,
            lambda: rtrl.segment(self, parameters, carry, xs, begin, products=products),
        )
        return carry, self._outputs(jax.vmap(self.readout)(states, xs), xs.shape[0])

    def _outputs(self, ys, *time):
        if ys.shape != (*time, self.outputs):
            raise ValueError(
                f"`readout` of {type(self).__name__} (shape {ys.shape[len(time) :]}) must have the "
                f"shape {(self.outputs,)}. Parameters of several, as of an ensemble, have an axis "
                "in front: `eqx.filter_vmap` goes over the memory too."
            )
        return ys
