"""The kinds of recurrence: what scans them in parallel and how their sensitivity is structured."""

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Inexact

import rtrl
import scan
from zoo.base import AbstractCell, State


class AbstractTimeInvariantCell(AbstractCell):
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
        """Zeros."""
        a, _ = jax.eval_shape(self.matrices)
        return jnp.zeros(a.shape, a.dtype)

    def coefficients(self, x: Array) -> tuple[Array, Array]:
        """`(a, b)` of `h_t = a ⊙ h_{t-1} + b`.

        **Arguments:**

        - `x`: the input, shape `[inputs]`.

        **Returns:**

        `(a, M x)`.
        """
        a, m = self.matrices()
        return a, _drive(m, x[None])[0]

    def update(self, state: State, x: Array) -> State:
        """See `zoo.AbstractCell.update`."""
        a, b = self.coefficients(x)
        return a * state + b

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Diagonal, real or complex."""
        return rtrl.Diagonal()

    def recurrence(self) -> Any:
        """`(a, M)`."""
        return self.matrices()

    def evolve(
        self, recurrence: Any, state: State, xs: Array, begin: Bool[Array, " time"] | None
    ) -> State:
        """See `zoo.AbstractCell.evolve`."""
        a, m = recurrence
        return scan.linear(a, _drive(m, xs), state, begin)


def _drive(m: Array, xs: Array) -> Array:
    """`M x_t` for all t. A real product per part: half the work of a complex one."""
    if not jnp.iscomplexobj(m):
        return jnp.tensordot(xs, m, (-1, -1))
    return jax.lax.complex(jnp.tensordot(xs, m.real, (-1, -1)), jnp.tensordot(xs, m.imag, (-1, -1)))


class AbstractLinearCell(AbstractCell):
    """Linear with coefficients that depend on the input: `h_t = a(x_t) ⊙ h_{t-1} + b(x_t)`.

    A cell states `coefficients` and an `init_state` of zeros.
    """

    @abstractmethod
    def coefficients(self, x: Array) -> tuple[Array, Array]:
        """The coefficients of one step.

        **Arguments:**

        - `x`: the input, shape `[inputs]`.

        **Returns:**

        `(a, b)`, each of the state's shape.
        """

    def update(self, state: State, x: Array) -> State:
        """See `zoo.AbstractCell.update`."""
        a, b = self.coefficients(x)
        return a * state + b

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Diagonal, real or complex."""
        return rtrl.Diagonal()

    def recurrence(self) -> Any:
        """The cell itself."""
        return self

    def evolve(
        self, recurrence: Any, state: State, xs: Array, begin: Bool[Array, " time"] | None
    ) -> State:
        """See `zoo.AbstractCell.evolve`."""
        a, b = jax.vmap(recurrence.coefficients)(xs)
        return scan.linear(a, b, state, begin)


class AbstractNonlinearCell(AbstractCell):
    """Nonlinear in the state: scanned one step after another."""

    def recurrence(self) -> Any:
        """The cell itself."""
        return self

    def evolve(
        self, recurrence: Any, state: State, xs: Array, begin: Bool[Array, " time"] | None
    ) -> State:
        """See `zoo.AbstractCell.evolve`."""
        initial = recurrence.init_state()
        return scan.sequential(recurrence.update, state, xs, begin, initial=initial)[1]


class AbstractDiagonalCell(AbstractNonlinearCell):
    """Nonlinear, but every unit depends on its own past only: see `rtrl.Diagonal`."""

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Diagonal, in blocks of as many components as the state has leaves."""
        return rtrl.Diagonal()


class AbstractDenseCell(AbstractNonlinearCell):
    """Nonlinear, every unit may depend on every other: exact RTRL is expensive."""

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Dense."""
        return rtrl.Dense()
