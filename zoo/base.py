"""What every memory offers, and how a cell's one definition becomes its four forms."""

import math
from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

import rtrl
import scan
from zoo._segment import rtrl_segment
from zoo.parts.initial import real_dtype

State = Any
Sensitivity = Any
Begin = Bool[Array, ""] | bool
Carry = tuple[State, Sensitivity]


class AbstractMemory(eqx.Module):
    """A memory in four forms: step, parallel scan, RTRL step and RTRL segment.

    Unbatched and time-major; callers `vmap`. `begin` says that `x` is the first observation of an
    episode: where it is true, the state and the sensitivity are replaced by their initial values
    before `x` is consumed. It is the only reset, so a scan over several episodes end to end is the
    same as a scan of each.
    """

    inputs: eqx.AbstractVar[int]
    hidden: eqx.AbstractVar[int]

    @property
    @abstractmethod
    def outputs(self) -> int:
        """The width of the output `y`."""

    @property
    def state_size(self) -> int:
        """The number of real numbers in the state."""
        leaves = jax.tree.leaves(jax.eval_shape(self.init_state))
        return sum(math.prod(x.shape) * (1 + jnp.iscomplexobj(x)) for x in leaves)

    @abstractmethod
    def init_state(self) -> State:
        """The state at the beginning of an episode.

        **Returns:**

        A pytree of arrays; a constant, not a function of parameters.
        """

    @abstractmethod
    def step(
        self, state: State, x: Float[Array, " inputs"], begin: Begin = False
    ) -> tuple[State, Float[Array, " outputs"]]:
        """One step, for acting.

        **Arguments:**

        - `state`: the state carried so far.
        - `x`: the input, shape `[inputs]`.
        - `begin`: whether `x` is the first input of an episode.

        **Returns:**

        `(state, y)`.

        **Raises:**

        `ValueError` for an `x` of another shape.
        """

    @abstractmethod
    def scan(
        self,
        state: State,
        xs: Float[Array, "time inputs"],
        begin: Bool[Array, " time"] | None = None,
    ) -> tuple[State, Float[Array, "time outputs"]]:
        """A whole sequence, parallel over time where the recurrence allows it.

        **Arguments:**

        - `state`: the state carried in.
        - `xs`: inputs, shape `[time, inputs]`.
        - `begin`: shape `[time]`, or `None` for no episode border.

        **Returns:**

        `(state, ys)`: the state after the last step and the outputs of all steps.

        **Raises:**

        `ValueError` for `xs` or `begin` of another shape.
        """

    @abstractmethod
    def rtrl_init(self) -> Sensitivity:
        """The sensitivity of the initial state.

        **Returns:**

        A pytree of zeros; see `rtrl.init`.
        """

    @abstractmethod
    def rtrl_step(
        self, carry: Carry, x: Float[Array, " inputs"], begin: Begin = False
    ) -> tuple[Carry, Float[Array, " outputs"]]:
        """One step whose gradient is that of the whole past.

        The gradient of `y` with respect to the parameters is supplied from the sensitivity; the
        path to `x` is open; the carry that comes out is under `stop_gradient`.

        **Arguments:**

        - `carry`: `(state, sensitivity)`.
        - `x`: the input, shape `[inputs]`.
        - `begin`: whether `x` is the first input of an episode.

        **Returns:**

        `(carry, y)`.

        **Raises:**

        `ValueError` for an `x` of another shape.
        """

    @abstractmethod
    def rtrl_scan(
        self,
        carry: Carry,
        xs: Float[Array, "time inputs"],
        begin: Bool[Array, " time"] | None = None,
    ) -> tuple[Carry, Float[Array, "time outputs"]]:
        """A segment: BPTT inside it, the sensitivity across its start.

        The gradient is untruncated, and the backward pass holds one sensitivity per segment, not
        one per step. The carry that comes out is under `stop_gradient`.

        **Arguments:**

        - `carry`: `(state, sensitivity)` at the segment's start.
        - `xs`: inputs, shape `[time, inputs]`.
        - `begin`: shape `[time]`, or `None` for no episode border.

        **Returns:**

        `(carry, ys)`.

        **Raises:**

        `ValueError` for `xs` or `begin` of another shape.
        """

    def _check_sequence(self, xs: Array, begin: Array | None) -> None:
        time = xs.shape[0] if xs.ndim else 0
        if time == 0:
            raise ValueError(f"`xs` (shape {xs.shape}) must have at least one step of time.")
        self._check(xs.shape, (time, self.inputs), "xs")
        if begin is not None:
            self._check(begin.shape, (time,), "begin")

    def _check(self, shape: tuple[int, ...], expected: tuple[int, ...], name: str) -> None:
        if shape != expected:
            raise ValueError(
                f"`{name}` (shape {shape}) must have the shape {expected} for "
                f"{type(self).__name__}(inputs={self.inputs}, hidden={self.hidden})."
            )


class AbstractCell(AbstractMemory):
    """A cell states its mathematics once, and gets the four forms of `zoo.AbstractMemory`.

    A concrete cell defines `init_state`, `update` and `readout`. The classes between this one and
    a cell (`AbstractLinearCell`, `AbstractDiagonalCell`, `AbstractDenseCell`) define the kind of
    recurrence: `structure`, `recurrence` and `evolve`.
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
    def recurrence(self) -> PyTree:
        """The parameters of the recurrence, as functions of the cell's own.

        RTRL keeps one sensitivity for each of these; ordinary autodiff takes the gradient from
        them to the cell's parameters. It is the cell itself unless a smaller set will do.

        **Returns:**

        A pytree.
        """

    @abstractmethod
    def evolve(
        self,
        recurrence: PyTree,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> State:
        """The states after every step, as a function of the recurrence's parameters.

        **Arguments:**

        - `recurrence`: as `recurrence()` returns it.
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
        return self._run(self.recurrence(), state, xs, begin, method)[:2]

    def rtrl_init(self) -> Sensitivity:
        """See `zoo.AbstractMemory.rtrl_init`."""
        recurrence, state = self.recurrence(), self.init_state()
        x = jax.ShapeDtypeStruct((1, self.inputs), real_dtype(self))

        def run(recurrence, state, xs):
            return _last(self.evolve(recurrence, state, xs, None))

        return rtrl.init(self.structure, run, recurrence, state, x)

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
        def follow(recurrence, state, known, begin):
            xs, states = known
            return _last(self.followed(recurrence, state, xs, begin, states))

        return rtrl_segment(
            self.structure,
            self._run,
            follow,
            self.recurrence(),
            self.init_state(),
            carry,
            xs,
            begin,
            products=products,
        )

    def followed(
        self,
        recurrence: PyTree,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        states: State,
    ) -> State:
        """`evolve`, with the derivatives that the sensitivities follow: the exact ones by default.

        **Arguments:** see `evolve`, and

        - `states`: what `evolve` returned. A recurrence that is a loop need not run it again.

        **Returns:**

        The states, with the values that `evolve` returns.
        """
        return self.evolve(recurrence, state, xs, begin)

    def _run(self, recurrence, state, xs, begin, method="auto"):
        """The last state, the outputs, and all states."""
        states = self.evolve(recurrence, state, xs, begin, method)
        return _last(states), jax.vmap(self.readout)(states, xs), states


def _last(states: State) -> State:
    return jax.tree.map(lambda h: h[-1], states)
