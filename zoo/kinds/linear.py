"""Linear recurrences with coefficients that depend on the input."""

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

import rtrl
from scan.precision import promoted
from zoo.kinds.elementwise import AbstractElementwiseCell, next_state
from zoo.memory import State
from zoo.parts import real_dtype


class AbstractLinearCell(AbstractElementwiseCell):
    """Linear with coefficients that depend on the input: `h_t = a(x_t) ⊙ h_{t-1} + b(x_t)`.

    A cell states `coefficients`. The state begins with zeros, in their shape and type.
    """

    def init_state(self) -> State:
        x = jax.ShapeDtypeStruct((self.inputs,), real_dtype(self))
        a, b = jax.eval_shape(lambda x: self.coefficients(x), x)
        try:
            shape = jnp.broadcast_shapes(a.shape, b.shape)
        except ValueError:
            raise ValueError(
                f"`coefficients` of {type(self).__name__} (shapes {a.shape} and {b.shape}) must "
                "broadcast against each other."
            ) from None
        return jnp.zeros(shape, promoted(a, b))

    def __check_init__(self):
        # The scan resets to zeros. Inside of a traced program there are no values to look at.
        for leaf in jax.tree.leaves(self.init_state()):
            if not isinstance(leaf, Tracer) and np.any(np.asarray(leaf) != 0):
                raise ValueError(
                    f"`init_state()` of {type(self).__name__} (={leaf}) must be zeros: a linear "
                    "recurrence begins with them."
                )

    @abstractmethod
    def coefficients(self, x: Array) -> tuple[Array, Array]:
        """The coefficients of one step.

        **Arguments:**

        - `x`: the input, shape `[inputs]`.

        **Returns:**

        `(a, b)`, which broadcast to the state's shape.
        """

    def update(self, state: State, x: Array) -> State:
        return next_state(*self.coefficients(x), state)

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Diagonal, real or complex."""
        return rtrl.Diagonal()

    def along(self, parameters: Any, state: State, xs: Array) -> tuple[Array, Array]:
        """`coefficients` of every step, with the axes of the state behind that of time."""

        # Of fewer axes, `scan.linear` would take those of a sequence as long as the state is wide
        # for constants in time.
        def of_step(x):
            a, b = parameters.coefficients(x)
            a = jnp.expand_dims(a, tuple(range(state.ndim - a.ndim)))
            return a, jnp.broadcast_to(b, state.shape)

        return jax.vmap(of_step)(xs)
