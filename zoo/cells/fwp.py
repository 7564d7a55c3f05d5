"""Fast weight programmer with tractable RTRL."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractTwoAxisCell
from zoo.parts import check_sizes, linear_weights
from zoo.registry import register


class FWP(AbstractTwoAxisCell):
    r"""Fast weight programmer without an activation on its keys.

        k, v, q = K x, V x, Q x
        W' = W + v kᵀ
        y  = W' softmax(q)

    Because the key is linear in x, all sensitivities to K and V compress to two matrices,
    `K̂' = K̂ + v xᵀ` and `V̂' = V̂ + k xᵀ`: O(n²) numbers for n × n fast weights.

    Source: *Exploring the Promise and Limits of Real-Time Recurrent Learning*, Irie et al. (2024),
    appendix A.2.
    """

    key: Float[Array, "keys inputs"]
    value: Float[Array, "hidden inputs"]
    query: Float[Array, "keys inputs"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, keys: int | None = None, key: Array):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of the values and of `y`.
        - `keys`: width of keys and queries; `hidden` by default.
        """
        keys = hidden if keys is None else keys
        check_sizes(inputs=inputs, hidden=hidden, keys=keys)
        self.key, self.value, self.query = (
            linear_weights(k, (n, inputs), inputs)
            for k, n in zip(jax.random.split(key, 3), (keys, hidden, keys), strict=True)
        )
        self.inputs, self.hidden = inputs, hidden

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Rows and columns, compressed."""
        return rtrl.TwoAxes(compressed=True)

    def recurrence_parameters(self) -> rtrl.Axes:
        """V belongs to rows, K to columns."""
        return rtrl.Axes(rows=self.value, columns=self.key)

    def coefficients(self, parameters: rtrl.Axes, xs: Array) -> tuple[Array, Array]:
        """`(1, v kᵀ)`."""
        values, keys = xs @ parameters.rows.T, xs @ parameters.columns.T
        return jnp.ones((1, 1), keys.dtype), values[:, :, None] * keys[:, None, :]

    def readout(
        self, state: Float[Array, "hidden keys"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`W' softmax(q)`."""
        return state @ jax.nn.softmax(x @ self.query.T)


register("fwp", FWP)
