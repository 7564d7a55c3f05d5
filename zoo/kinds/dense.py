"""Recurrences in which every unit may act on every other."""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
from jaxtyping import Array

import rtrl
from zoo.kinds.nonlinear import AbstractNonlinearCell
from zoo.memory import State

Recurrent = Callable[[Array, Array], Array]
_LOCAL_PRODUCTS = {"snap1": rtrl.snap1_product, "rflo": rtrl.rflo_product}


class AbstractUnstructuredCell(AbstractNonlinearCell):
    """Any parameters: what RTRL keeps is as large as state times parameters, or random.

    `rtrl="exact"` is `rtrl.Dense`, for small cells; `rtrl="uoro"` is `rtrl.UORO`, unbiased, with
    one number for each of the state and of the parameters.
    """

    rtrl: eqx.AbstractVar[str]

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """As `rtrl` says."""
        return rtrl.UORO() if self.rtrl == "uoro" else rtrl.Dense()

    @property
    def coupling(self) -> str:
        """`"dense"`."""
        return "dense"


class AbstractDenseCell(AbstractUnstructuredCell):
    """Nonlinear, every unit may depend on every other through products with matrices.

    A cell states `transition`, and with it what its RTRL forms follow across a segment's start:

    | `rtrl` | follows | numbers kept for n units, P parameters |
    |---|---|---|
    | `"exact"` | everything | n P |
    | `"snap1"` | the path from each unit to itself (Menick et al., 2021) | P |
    | `"rflo"` | what the cell keeps without its recurrent products (Murray, 2019) | P |
    | `"uoro"` | everything, in an unbiased random rank-one form (Tallec & Ollivier, 2018) | n + P |

    Inside a segment the gradient is exact whatever the choice, so longer segments mean less
    approximation. Leading axes of the parameters that `transition` uses are the units.
    """

    @abstractmethod
    def transition(self, state: State, x: Array, recurrent: Recurrent) -> State:
        """One step of the recurrence.

        **Arguments:**

        - `state`: the previous state.
        - `x`: the input, shape `[inputs]`.
        - `recurrent`: called as `recurrent(U, h)` for every product of a recurrent matrix
          `[hidden, gates, hidden]` with a function of the state `[hidden]`; returns
          `[hidden, gates]`. The approximations put a product with another derivative here.

        **Returns:**

        The next state.
        """

    def update(self, state: State, x: Array) -> State:
        """See `zoo.AbstractCell.update`."""
        return self.transition(state, x, rtrl.exact_product)

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """As `rtrl` says."""
        return rtrl.Diagonal() if self.rtrl in _LOCAL_PRODUCTS else super().structure

    def surrogate_update(self, state: State, x: Array) -> State:
        """See `zoo.kinds.AbstractNonlinearCell.surrogate_update`."""
        return self.transition(state, x, _LOCAL_PRODUCTS.get(self.rtrl, rtrl.exact_product))


def check_rtrl(value: str, choices: tuple[str, ...] = ("exact", "snap1", "rflo", "uoro")) -> str:
    """The value of the option `rtrl`, or `ValueError` with those there are."""
    if value not in choices:
        raise ValueError(f"`rtrl` (={value!r}) must be one of {', '.join(choices)}.")
    return value
