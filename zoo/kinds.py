"""The kinds of recurrence: what scans them in parallel and how their sensitivity is structured."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Inexact

import rtrl
import scan
from zoo.base import AbstractCell, State

Recurrent = Callable[[Array, Array], Array]
_LOCAL_PRODUCTS = {"snap1": rtrl.snap1_product, "rflo": rtrl.rflo_product}


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
        self,
        recurrence: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> State:
        """See `zoo.AbstractCell.evolve`."""
        a, m = recurrence
        return scan.linear(a, _drive(m, xs), state, begin, method=method)


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
        self,
        recurrence: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> State:
        """See `zoo.AbstractCell.evolve`."""
        a, b = jax.vmap(recurrence.coefficients)(xs)
        return scan.linear(a, b, state, begin, method=method)


class AbstractNonlinearCell(AbstractCell):
    """Nonlinear in the state: scanned one step after another."""

    def recurrence(self) -> Any:
        """The cell itself."""
        return self

    def evolve(
        self,
        recurrence: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> State:
        """See `zoo.AbstractCell.evolve`."""
        if check_method(method, ("auto", "sequential", "newton")) == "newton":
            coupling = "units" if isinstance(self, AbstractDiagonalCell) else "dense"
            return _solved(scan.newton, _update, recurrence, state, xs, begin, coupling=coupling)[0]
        if method == "auto" and isinstance(self, AbstractDiagonalCell) and _is_of_units(state):
            return _solved(scan.nonlinear, _update, recurrence, state, xs, begin)
        initial = recurrence.init_state()
        return scan.sequential(recurrence.update, state, xs, begin, initial=initial)[1]

    def followed(
        self,
        recurrence: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        states: State,
    ) -> State:
        """See `zoo.AbstractCell.followed`."""
        if not isinstance(self.structure, rtrl.Diagonal):
            return self.evolve(recurrence, state, xs, begin)
        if not _is_of_units(state):
            initial = recurrence.init_state()
            return scan.sequential(recurrence.followed_update, state, xs, begin, initial=initial)[1]
        return _solved(
            scan.nonlinear, _followed_update, recurrence, state, xs, begin, states=states
        )

    def followed_update(self, state: State, x: Array) -> State:
        """`update`, with the derivatives that the sensitivities follow.

        **Arguments:** see `zoo.AbstractCell.update`.

        **Returns:**

        The next state.
        """
        return self.update(state, x)


def _update(cell: AbstractNonlinearCell, state: State, x: Array) -> State:
    return cell.update(state, x)


def _followed_update(cell: AbstractNonlinearCell, state: State, x: Array) -> State:
    return cell.followed_update(state, x)


def _is_of_units(state: State) -> bool:
    """Whether a state's leaves are real and of one shape."""
    leaves = jax.tree.leaves(state)
    real = all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves)
    return real and len({leaf.shape for leaf in leaves}) == 1


def _solved(
    method: Callable[..., Any],
    update: Callable[[Any, State, Array], State],
    cell: Any,
    state: State,
    xs: Array,
    begin: Array | None,
    **options: Any,
) -> Any:
    """A cell's recurrence by a scan that takes the parameters by themselves."""
    parameters, rest = eqx.partition(cell, eqx.is_inexact_array)
    return method(
        lambda parameters, state, x: update(eqx.combine(parameters, rest), state, x),
        parameters,
        state,
        xs,
        begin,
        initial=cell.init_state(),
        **options,
    )


class AbstractDiagonalCell(AbstractNonlinearCell):
    """Nonlinear, but every unit depends on its own past only: see `rtrl.Diagonal`."""

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Diagonal, in blocks of as many components as the state has leaves."""
        return rtrl.Diagonal()


class AbstractUnstructuredCell(AbstractNonlinearCell):
    """Any recurrence: what RTRL keeps is as large as state times parameters, or random.

    `rtrl="exact"` is `rtrl.Dense`, for small cells; `rtrl="uoro"` is `rtrl.UORO`, unbiased, with
    one number for each of the state and of the parameters.
    """

    rtrl: eqx.AbstractVar[str]

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """As `rtrl` says."""
        return rtrl.UORO() if self.rtrl == "uoro" else rtrl.Dense()


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
        return self.transition(state, x, rtrl.product)

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """As `rtrl` says."""
        return rtrl.Diagonal() if self.rtrl in _LOCAL_PRODUCTS else super().structure

    def followed_update(self, state: State, x: Array) -> State:
        """See `zoo.kinds.AbstractNonlinearCell.followed_update`."""
        return self.transition(state, x, _LOCAL_PRODUCTS.get(self.rtrl, rtrl.product))


def check_method(value: str, choices: tuple[str, ...]) -> str:
    """The option `method` of a scan, or `ValueError` with those there are."""
    if value not in choices:
        raise ValueError(f"`method` (={value!r}) must be one of {', '.join(choices)}.")
    return value


def check_rtrl(value: str, choices: tuple[str, ...] = ("exact", "snap1", "rflo", "uoro")) -> str:
    """The value of the option `rtrl`, or `ValueError` with those there are."""
    if value not in choices:
        raise ValueError(f"`rtrl` (={value!r}) must be one of {', '.join(choices)}.")
    return value


class AbstractTwoAxisCell(AbstractCell):
    """Linear, with a matrix as state: `S_t = a_t ⊙ S_{t-1} + b_t`, entry by entry.

    A cell states `init_state` (zeros), `recurrence`, its parameters as `rtrl.Axes`, and
    `coefficients`. See `rtrl.TwoAxes` for the sensitivities.
    """

    @abstractmethod
    def recurrence(self) -> rtrl.Axes:
        """The parameters of the recurrence, by the axis that they belong to."""

    @abstractmethod
    def coefficients(self, recurrence: rtrl.Axes, xs: Array) -> tuple[Array, Array]:
        """The coefficients of a sequence.

        **Arguments:**

        - `recurrence`: as `recurrence()` returns it.
        - `xs`: inputs, shape `[time, inputs]`.

        **Returns:**

        `(a, b)` for `scan.linear`: `b` has shape `[time, *state]`; `a` broadcasts to it, or has no
        time axis where it is constant.
        """

    def update(self, state: State, x: Array) -> State:
        """See `zoo.AbstractCell.update`."""
        a, b = self.coefficients(self.recurrence(), x[None])
        return (a[0] if a.ndim == b.ndim else a) * state + b[0]

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Rows and columns."""
        return rtrl.TwoAxes()

    def evolve(
        self,
        recurrence: rtrl.Axes,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> State:
        """See `zoo.AbstractCell.evolve`."""
        a, b = self.coefficients(recurrence, xs)
        return scan.linear(a, b, state, begin, method=method)
