"""LSTM with fully recurrent forget and value gates, otherwise an eLSTM."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractDenseCell, Recurrent
from zoo.parts import Linear, check_sizes, linear_weights
from zoo.registry import register


class FeLSTM(AbstractDenseCell):
    r"""The fully recurrent counterpart of `zoo.ELSTM`.

        f = σ(F x + W_f c + b_f)
        z = tanh(Z x + W_z c + b_z)
        c' = f ⊙ c + (1 - f) ⊙ z
        o = σ(O x + W_o c' + b_o)
        y = o ⊙ c'

    Dense: exact RTRL keeps hidden × parameters numbers; its paper trains it with SnAp-1,
    `sensitivity=rtrl.SnAp1()`. See `zoo.AbstractDenseCell`.

    Source: *Exploring the Promise and Limits of Real-Time Recurrent Learning*, Irie et al. (2024),
    appendix A.5.
    """

    w: Float[Array, "hidden two inputs"]
    u: Float[Array, "hidden two hidden"]
    b: Float[Array, "hidden two"]
    output: Linear
    w_o: Float[Array, "hidden hidden"]
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
        keys = jax.random.split(key, 5)
        self.w = linear_weights(keys[0], (hidden, 2, inputs), inputs)
        self.u = 0.1 * jax.random.normal(keys[1], (hidden, 2, hidden))
        self.b = linear_weights(keys[2], (hidden, 2), inputs)
        self.output = Linear(inputs, hidden, key=keys[3])
        self.w_o = 0.1 * jax.random.normal(keys[4], (hidden, hidden))
        self.inputs, self.hidden, self.sensitivity = inputs, hidden, sensitivity

    def transition(
        self, state: Float[Array, " hidden"], x: Float[Array, " inputs"], recurrent: Recurrent
    ) -> Float[Array, " hidden"]:
        """`c'`."""
        f, z = (rtrl.exact_product(self.w, x) + recurrent(self.u, state) + self.b).T
        f = jax.nn.sigmoid(f)
        return f * state + (1 - f) * jnp.tanh(z)

    def readout(
        self, state: Float[Array, " hidden"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`o ⊙ c'`."""
        return jax.nn.sigmoid(self.output(x) + state @ self.w_o.T) * state


register("felstm", FeLSTM)
