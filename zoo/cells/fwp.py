"""Fast weight programmer with tractable RTRL."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractOuterProductCell
from zoo.parts import keys_of_a_head, linear_weights
from zoo.registry import register


class FWP(AbstractOuterProductCell):
    r"""Fast weight programmer without an activation on its keys.

        k, v, q = K x, V x, Q x
        W' = W + v kᵀ
        y  = W' softmax(q)

    The state is W'ᵀ of every head. Because the key is linear in x, all sensitivities to K and V
    compress to two matrices, `K̂' = K̂ + v xᵀ` and `V̂' = V̂ + k xᵀ`: O(n²) numbers for n × n fast
    weights.

    Source: *Exploring the Promise and Limits of Real-Time Recurrent Learning*, Irie et al. (2024),
    appendix A.2.
    """

    key: Float[Array, "heads_and_keys inputs"]
    value: Float[Array, "hidden inputs"]
    query: Float[Array, "heads_and_keys inputs"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    heads: int = eqx.field(static=True)

    def __init__(
        self, inputs: int, hidden: int, *, keys: int | None = None, heads: int = 1, key: Array
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of the values and of `y`.
        - `keys`: width of a head's keys and queries; that of its values by default.
        - `heads`: a divisor of `hidden`; each has its part of the values.
        """
        keys = keys_of_a_head(inputs, hidden, keys, heads)
        self.key, self.value, self.query = (
            linear_weights(k, (n, inputs), inputs)
            for k, n in zip(
                jax.random.split(key, 3), (heads * keys, hidden, heads * keys), strict=True
            )
        )
        self.inputs, self.hidden, self.heads = inputs, hidden, heads

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Rows and columns, compressed."""
        return rtrl.TwoAxes(compressed=True)

    def recurrence_parameters(self) -> rtrl.Axes:
        """K belongs to rows, V to columns."""
        key, value = (w.reshape(self.heads, -1, self.inputs) for w in (self.key, self.value))
        return rtrl.Axes(rows=key, columns=value)

    def written(self, parameters: rtrl.Axes, xs: Array) -> tuple[None, Array, Array]:
        """`(log 1, k, v)`."""
        keys, values = (
            jnp.einsum("hni,ti->thn", w, xs) for w in (parameters.rows, parameters.columns)
        )
        return None, keys, values

    def queries(self, xs: Array) -> Float[Array, "time heads keys"]:
        """`softmax(q)`."""
        return jax.nn.softmax((xs @ self.query.T).reshape(len(xs), self.heads, -1))

    def respond(
        self, read: Float[Array, "heads values"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`W' softmax(q)`."""
        return read.ravel()


register("fwp", FWP)
