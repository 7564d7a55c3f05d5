"""Linear recurrences with constant coefficients."""

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Inexact

import rtrl
from scan.precision import promoted
from zoo.kinds.elementwise import AbstractElementwiseCell, next_state
from zoo.memory import State


class AbstractTimeInvariantCell(AbstractElementwiseCell):
    """Linear with constant coefficients: `h_t = a ⊙ h_{t-1} + M x_t`, real or complex.

    A cell states `matrices() -> (a, M)`. RTRL keeps one trace for `a` and one for `M`, whatever
    they are made of; a complex `M = γ ⊙ (W1 + i W2)` costs one complex number per entry.
    """

    @abstractmethod
    def matrices(self) -> tuple[Inexact[Array, "..."], Inexact[Array, "..."]]:
        """The coefficients of the recurrence.

        **Returns:**

        `(a, M)`: the decay, shape `[*units]`, and the input matrix, shape `[*units, inputs]`.
        """

    def init_state(self) -> State:
        a, m = jax.eval_shape(self.matrices)
        return jnp.zeros(a.shape, promoted(a, m))

    def coefficients(self, x: Array) -> tuple[Array, Array]:
        """`(a, b)` of `h_t = a ⊙ h_{t-1} + b`.

        **Arguments:**

        - `x`: the input, shape `[inputs]`.

        **Returns:**

        `(a, M x)`.
        """
        a, m = self.matrices()
        return a, drive(m, x[None])[0]

    def update(self, state: State, x: Array) -> State:
        return next_state(*self.coefficients(x), state)

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Diagonal, real or complex."""
        return rtrl.Diagonal()

    def recurrence_parameters(self) -> Any:
        """`(a, M)`."""
        return self.matrices()

    def along(self, parameters: Any, state: State, xs: Array) -> tuple[Array, Array]:
        """`a` and `M x_t`."""
        a, m = parameters
        return a, drive(m, xs)


def drive(m: Array, xs: Array) -> Array:
    """`M x_t` for all t. A real product per part: half the work of a complex one."""
    if not jnp.iscomplexobj(m):
        return jnp.tensordot(xs, m, (-1, -1))
    return jax.lax.complex(jnp.tensordot(xs, m.real, (-1, -1)), jnp.tensordot(xs, m.imag, (-1, -1)))
