"""Elman network."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractDenseCell, Recurrent
from zoo.parts import check_sizes, linear_weights
from zoo.registry import register


class Elman(AbstractDenseCell):
    r"""The simple recurrent network.

        h' = tanh(W x + U h + b)
        y = h'

    Dense: exact RTRL keeps hidden × parameters numbers; see `zoo.AbstractDenseCell` for the others.

    Source: *Finding Structure in Time*, Elman (1990).
    """

    w: Float[Array, "hidden one inputs"]
    u: Float[Array, "hidden one hidden"]
    b: Float[Array, "hidden one"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    sensitivity: rtrl.AbstractSensitivity = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        sensitivity: rtrl.AbstractSensitivity = rtrl.Exact(),
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of units, and width of `y`.
        - `sensitivity`: what RTRL follows; see `zoo.AbstractDenseCell`.
        """
        check_sizes(inputs=inputs, hidden=hidden)
        keys = jax.random.split(key, 3)
        self.w = linear_weights(keys[0], (hidden, 1, inputs), hidden)
        self.u = linear_weights(keys[1], (hidden, 1, hidden), hidden)
        self.b = linear_weights(keys[2], (hidden, 1), hidden)
        self.inputs, self.hidden, self.sensitivity = inputs, hidden, sensitivity

    def transition(
        self, state: Float[Array, " hidden"], x: Float[Array, " inputs"], recurrent: Recurrent
    ) -> Float[Array, " hidden"]:
        """`h'`."""
        return jnp.tanh(rtrl.exact_product(self.w, x) + recurrent(self.u, state) + self.b)[:, 0]


register("elman", Elman)
