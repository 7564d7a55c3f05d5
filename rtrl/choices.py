"""What RTRL follows of a recurrence whose units act on each other."""

import abc
from dataclasses import dataclass

from jaxtyping import Array, PyTree

from rtrl.dense import Dense
from rtrl.diagonal import Diagonal
from rtrl.products import exact_product, rflo_product, snap1_product
from rtrl.structure import AbstractStructure


@dataclass(frozen=True)
class AbstractSensitivity(abc.ABC):
    """A choice of what RTRL keeps and follows: the argument `sensitivity` of dense cells.

    A choice is static (hashable, no arrays), and says two things: the structure of the sensitivity,
    and which recurrent product stands in for `U h` when it is moved on. A rule that is defined step
    by step says so by `at_every_step`; the others approximate what crosses a segment's start only.
    """

    @property
    @abc.abstractmethod
    def structure(self) -> AbstractStructure:
        """How the recurrence's units depend on one another, as far as it is followed."""

    @abc.abstractmethod
    def product(self, matrix: Array, h: Array) -> Array:
        """`U h` with the derivative that the sensitivity follows.

        **Arguments:**

        - `matrix`: shape `[hidden, gates, hidden]`.
        - `h`: shape `[hidden]`.

        **Returns:**

        Shape `[hidden, gates]`.
        """

    @property
    def at_every_step(self) -> bool:
        """Whether its derivatives take the place of the exact ones inside of a segment too.

        The gradient then does not depend on the segmentation.
        """
        return False

    def followed(self, state: PyTree) -> PyTree:
        """The previous state, with what is followed of its derivative in a step: all by default.

        **Arguments:**

        - `state`: the state before a step.

        **Returns:**

        The same values.
        """
        return state


@dataclass(frozen=True)
class Exact(AbstractSensitivity):
    """Everything: `rtrl.Dense`, as many numbers as state times parameters."""

    @property
    def structure(self) -> AbstractStructure:
        return Dense()

    def product(self, matrix: Array, h: Array) -> Array:
        return exact_product(matrix, h)


@dataclass(frozen=True)
class SnAp1(AbstractSensitivity):
    """The path from each unit to itself: each parameter once for every number of a unit's state.

    Source: *A Practical Sparse Approximation for Real Time Recurrent Learning*, Menick et al.
    (2021).
    """

    @property
    def structure(self) -> AbstractStructure:
        return Diagonal()

    def product(self, matrix: Array, h: Array) -> Array:
        return snap1_product(matrix, h)


@dataclass(frozen=True)
class RFLO(AbstractSensitivity):
    """What a cell keeps without its recurrent products: as many numbers as of `SnAp1`.

    Source: *Local online learning in recurrent networks with random feedback*, Murray (2019),
    without the random feedback: the error reaches the units exactly.
    """

    @property
    def structure(self) -> AbstractStructure:
        return Diagonal()

    def product(self, matrix: Array, h: Array) -> Array:
        return rflo_product(matrix, h)


@dataclass(frozen=True)
class EProp(AbstractSensitivity):
    """Eligibility traces of each unit's own state, at every step: as many numbers as of `SnAp1`.

    With the units' recurrent inputs `z = h_{t-1}` held fixed, `h_t = M(h_{t-1}, z, x_t, θ)`, a
    unit's trace and the gradient of a step's loss are

        e_t = ∂M/∂h_{t-1} e_{t-1} + ∂M/∂θ        dL_t/dθ ≈ (∂L_t/∂h_t) e_t

    What crosses a segment's start is what `rtrl.RFLO` keeps. Inside a segment RFLO's gradient goes
    through the recurrent products, and that of e-prop never does.

    Source: *A solution to the learning dilemma for recurrent networks of spiking neurons*, Bellec
    et al. (2020), equations 3 and 14, with symmetric feedback: the learning signal is the
    gradient at the output.
    """

    @property
    def structure(self) -> AbstractStructure:
        return Diagonal()

    @property
    def at_every_step(self) -> bool:
        return True

    def product(self, matrix: Array, h: Array) -> Array:
        return rflo_product(matrix, h)
