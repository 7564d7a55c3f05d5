"""Nonlinear recurrences whose units do not talk to each other."""

import rtrl
from zoo.kinds.nonlinear import AbstractNonlinearCell


class AbstractDiagonalCell(AbstractNonlinearCell):
    """Nonlinear, but every unit depends on its own past only: see `rtrl.Diagonal`."""

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Diagonal, in blocks of as many components as the state has leaves."""
        return rtrl.Diagonal()

    @property
    def coupling(self) -> str:
        """`"units"`."""
        return "units"
