"""Linear recurrences of matrices."""

from abc import abstractmethod

import jax
import jax.numpy as jnp
from jaxtyping import Array

import rtrl
from scan.precision import promoted
from zoo.kinds.elementwise import AbstractElementwiseCell, next_state
from zoo.memory import State
from zoo.parts import real_dtype


class AbstractTwoAxisCell(AbstractElementwiseCell):
    """Linear, with a matrix as state: `S_t = a_t ⊙ S_{t-1} + b_t`, entry by entry.

    A cell states `recurrence_parameters`, as `rtrl.Axes`, and `coefficients`. The state begins with
    zeros. See `rtrl.TwoAxes` for the sensitivities.
    """

    def init_state(self) -> State:
        xs = jax.ShapeDtypeStruct((1, self.inputs), real_dtype(self))
        a, b = jax.eval_shape(lambda x: self.coefficients(self.recurrence_parameters(), x), xs)
        return jnp.zeros(b.shape[1:], promoted(a, b))

    @abstractmethod
    def recurrence_parameters(self) -> rtrl.Axes:
        """The parameters of the recurrence, by the axis that they belong to.

        **Returns:**

        Axes of functions of the cell's own parameters.
        """

    @abstractmethod
    def coefficients(self, parameters: rtrl.Axes, xs: Array) -> tuple[Array, Array]:
        """The coefficients of a sequence.

        **Arguments:**

        - `parameters`: as `recurrence_parameters()` returns it.
        - `xs`: inputs, shape `[time, inputs]`.

        **Returns:**

        `(a, b)` for `scan.linear`: `b` has shape `[time, *state]`; `a` broadcasts to it, or has no
        time axis where it is constant.
        """

    def update(self, state: State, x: Array) -> State:
        a, b = self.coefficients(self.recurrence_parameters(), x[None])
        return next_state(a[0] if a.ndim == b.ndim else a, b[0], state)

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Rows and columns."""
        return rtrl.TwoAxes()

    def along(self, parameters: rtrl.Axes, state: State, xs: Array) -> tuple[Array, Array]:
        """`coefficients`."""
        return self.coefficients(parameters, xs)
