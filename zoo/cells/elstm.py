"""LSTM with elementwise recurrence."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from zoo.kinds import AbstractDiagonalCell
from zoo.parts import Linear, check_sizes
from zoo.registry import register


class ELSTM(AbstractDiagonalCell):
    r"""LSTM with elementwise recurrence (eLSTM).

        f = σ(F x + w_f ⊙ c + b_f)
        z = tanh(Z x + w_z ⊙ c + b_z)
        c' = f ⊙ c + (1 - f) ⊙ z
        o = σ(O x + W_o c' + b_o)
        y = o ⊙ c'

    The output gate comes after the recurrence, so RTRL needs no sensitivity for it.

    Source: *Exploring the Promise and Limits of Real-Time Recurrent Learning*, Irie et al. (2024),
    equations 5 to 9.
    """

    forget: Linear
    value: Linear
    output: Linear
    w_f: Float[Array, " hidden"]
    w_z: Float[Array, " hidden"]
    w_o: Float[Array, "hidden hidden"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, key: Array):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of units, and width of `y`.
        """
        check_sizes(inputs=inputs, hidden=hidden)
        keys = jax.random.split(key, 6)
        self.forget = Linear(inputs, hidden, key=keys[0])
        self.value = Linear(inputs, hidden, key=keys[1])
        self.output = Linear(inputs, hidden, key=keys[2])
        self.w_f = 0.1 * jax.random.normal(keys[3], (hidden,))
        self.w_z = 0.1 * jax.random.normal(keys[4], (hidden,))
        self.w_o = 0.1 * jax.random.normal(keys[5], (hidden, hidden))
        self.inputs, self.hidden = inputs, hidden

    def update(
        self, state: Float[Array, " hidden"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`c'`."""
        f = jax.nn.sigmoid(self.forget(x) + self.w_f * state)
        z = jnp.tanh(self.value(x) + self.w_z * state)
        return f * state + (1 - f) * z

    def readout(
        self, state: Float[Array, " hidden"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`o ⊙ c'`."""
        return jax.nn.sigmoid(self.output(x) + state @ self.w_o.T) * state


register("elstm", ELSTM)
