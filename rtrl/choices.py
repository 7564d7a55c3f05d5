"""What RTRL follows of a recurrence whose units act on each other."""

import abc
from dataclasses import dataclass

from jaxtyping import Array

from rtrl.dense import Dense
from rtrl.diagonal import Diagonal
from rtrl.products import exact_product, rflo_product, snap1_product
from rtrl.structure import AbstractStructure


@dataclass(frozen=True)
class AbstractSensitivity(abc.ABC):
    """A choice of what RTRL keeps and follows: the argument `sensitivity` of dense cells.

    A choice is static (hashable, no arrays), and says two things: the structure of the sensitivity,
    and which recurrent product stands in for `U h` when it is moved on.
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
    """The path from each unit to itself: as many numbers as parameters.

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
    """What a cell keeps without its recurrent products: as many numbers as parameters.

    Source: *Local online learning in recurrent networks with random feedback*, Murray (2019),
    without the random feedback: the error reaches the units exactly.
    """

    @property
    def structure(self) -> AbstractStructure:
        return Diagonal()

    def product(self, matrix: Array, h: Array) -> Array:
        return rflo_product(matrix, h)
