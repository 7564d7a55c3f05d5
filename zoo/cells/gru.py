"""Gated Recurrent Unit."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractDenseCell, Recurrent
from zoo.parts import check_sizes, linear_weights
from zoo.registry import register


class GRU(AbstractDenseCell):
    r"""Gated Recurrent Unit.

        r = σ(W_r x + U_r h + b_r)
        z = σ(W_z x + U_z h + b_z)
        n = tanh(W_n x + b_n + r ⊙ (U_n h + b_u))
        h' = (1 - z) ⊙ n + z ⊙ h
        y = h'

    Dense: exact RTRL keeps hidden × parameters numbers; see `zoo.AbstractDenseCell` for the others.

    Source: Cho et al. (2014), with the reset gate after the product as in cuDNN and
    `equinox.nn.GRUCell`.
    """

    w: Float[Array, "hidden three inputs"]
    u: Float[Array, "hidden three hidden"]
    b: Float[Array, "hidden three"]
    b_u: Float[Array, " hidden"]
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
        keys = jax.random.split(key, 4)
        self.w = linear_weights(keys[0], (hidden, 3, inputs), hidden)
        self.u = linear_weights(keys[1], (hidden, 3, hidden), hidden)
        self.b = linear_weights(keys[2], (hidden, 3), hidden)
        self.b_u = linear_weights(keys[3], (hidden,), hidden)
        self.inputs, self.hidden, self.sensitivity = inputs, hidden, sensitivity

    def transition(
        self, state: Float[Array, " hidden"], x: Float[Array, " inputs"], recurrent: Recurrent
    ) -> Float[Array, " hidden"]:
        """`h'`."""
        w_r, w_z, w_n = (rtrl.exact_product(self.w, x) + self.b).T
        u_r, u_z, u_n = recurrent(self.u, state).T
        r, z = jax.nn.sigmoid(w_r + u_r), jax.nn.sigmoid(w_z + u_z)
        n = jnp.tanh(w_n + r * (u_n + self.b_u))
        return (1 - z) * n + z * state


register("gru", GRU)
