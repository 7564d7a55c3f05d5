"""Gated Impulse Linear Recurrence."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from zoo.kinds import AbstractLinearCell
from zoo.parts import Linear, check_sizes
from zoo.registry import register


class LinearRNN(AbstractLinearCell):
    r"""Gated Impulse Linear Recurrence (GILR): a leaky average whose leak the input chooses.

        g = σ(U x + b_g)
        i = tanh(V x + b_i)
        h' = g ⊙ h + (1 - g) ⊙ i
        y = h'

    Source: *Parallelizing Linear Recurrent Neural Nets Over Sequence Length*, Martin & Cundy
    (2018), equation 6.
    """

    gate: Linear
    impulse: Linear
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, key: Array):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of units, and width of `y`.
        """
        check_sizes(inputs=inputs, hidden=hidden)
        gate_key, impulse_key = jax.random.split(key)
        self.gate = Linear(inputs, hidden, key=gate_key)
        self.impulse = Linear(inputs, hidden, key=impulse_key)
        self.inputs, self.hidden = inputs, hidden

    def coefficients(
        self, x: Float[Array, " inputs"]
    ) -> tuple[Float[Array, " hidden"], Float[Array, " hidden"]]:
        """`(g, (1 - g) ⊙ i)`."""
        g = jax.nn.sigmoid(self.gate(x))
        return g, (1 - g) * jnp.tanh(self.impulse(x))


register("linear_rnn", LinearRNN)
