"""Linear memories of outer products that are read by queries."""

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import rtrl
import scan
from zoo.kinds.two_axes import AbstractTwoAxisCell
from zoo.memory import State

Written = tuple[Array | None, Array, Array]


class AbstractOuterProductCell(AbstractTwoAxisCell):
    """Matrices that decay and that outer products are added to: `S_t = a_t ⊙ S_{t-1} + k_t v_tᵀ`.

    A cell states `recurrence_parameters`, what it writes, the `queries` `q_t`, and `respond`, the
    output from what is read, `S_tᵀ q_t`. The state has the shape `[heads, keys, values]`. A scan
    need not make the states of all steps: see `scan.outer_products`.
    """

    @abstractmethod
    def written(self, parameters: rtrl.Axes, xs: Array) -> Written:
        """What a sequence writes.

        **Arguments:**

        - `parameters`: as `recurrence_parameters()` returns it.
        - `xs`: inputs, shape `[time, inputs]`.

        **Returns:**

        `(log a, k, v)`: the logarithm of the decay, of shape `[time, heads, 1]` or `[time, heads,
        keys]`, nowhere positive, or `None` where nothing decays; keys `[time, heads, keys]` and
        values `[time, heads, values]`.
        """

    @abstractmethod
    def queries(self, xs: Array) -> Float[Array, "time heads keys"]:
        """What a sequence asks for.

        **Arguments:**

        - `xs`: inputs, shape `[time, inputs]`.

        **Returns:**

        Shape `[time, heads, keys]`.
        """

    @abstractmethod
    def respond(self, read: Array, x: Array) -> Float[Array, " outputs"]:
        """The output of a step.

        **Arguments:**

        - `read`: `S_tᵀ q_t`, shape `[heads, values]`.
        - `x`: the input, shape `[inputs]`.

        **Returns:**

        `y`, shape `[outputs]`.
        """

    @property
    def decays_alike(self) -> bool:
        """Whether the rows of a head decay alike, though `written` has a decay for each.

        A scan in chunks is faster with one decay; the sensitivity needs a copy for each row where
        it comes from parameters of theirs. `False` by default.
        """
        return False

    def coefficients(self, parameters: rtrl.Axes, xs: Array) -> tuple[Array, Array]:
        """`(a, k vᵀ)`."""
        log_decay, keys, values = self.written(parameters, xs)
        drive = keys[..., :, None] * values[..., None, :]
        if log_decay is None:
            return jnp.ones((1, 1, 1), drive.dtype), drive
        return jnp.exp(log_decay)[..., None], drive

    def readout(
        self, state: Float[Array, "heads keys values"], x: Float[Array, " inputs"]
    ) -> Float[Array, " outputs"]:
        """The response to `Sᵀ q`."""
        return self.respond((self.queries(x[None])[0][:, None] @ state)[:, 0], x)

    def scan_in_chunks(
        self, state: State, xs: Array, begin: Bool[Array, " time"] | None
    ) -> tuple[Any, Array]:
        log_decay, keys, values = self.written(self.recurrence_parameters(), xs)
        if self.decays_alike and log_decay is not None:
            log_decay = log_decay[..., :1]
        state, reads = scan.outer_products(self.queries(xs), keys, values, state, log_decay, begin)
        return state, jax.vmap(self.respond)(reads, xs)
