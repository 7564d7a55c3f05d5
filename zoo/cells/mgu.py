"""Minimal Gated Unit."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractDenseCell, Recurrent
from zoo.parts import check_sizes, linear_weights
from zoo.registry import register


class MGU(AbstractDenseCell):
    r"""Minimal Gated Unit: a GRU with one gate for both purposes.

        f = σ(W_f x + U_f h + b_f)
        n = tanh(W_n x + U_n (f ⊙ h) + b_n)
        h' = (1 - f) ⊙ h + f ⊙ n
        y = h'

    Dense: exact RTRL keeps hidden × parameters numbers; see `zoo.AbstractDenseCell` for the others.

    Source: *Minimal Gated Unit for Recurrent Neural Networks*, Zhou et al. (2016).
    """

    w: Float[Array, "hidden two inputs"]
    u_f: Float[Array, "hidden one hidden"]
    u_n: Float[Array, "hidden one hidden"]
    b: Float[Array, "hidden two"]
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
        self.w = linear_weights(keys[0], (hidden, 2, inputs), hidden)
        self.u_f = linear_weights(keys[1], (hidden, 1, hidden), hidden)
        self.u_n = linear_weights(keys[2], (hidden, 1, hidden), hidden)
        self.b = linear_weights(keys[3], (hidden, 2), hidden)
        self.inputs, self.hidden, self.sensitivity = inputs, hidden, sensitivity

    def transition(
        self, state: Float[Array, " hidden"], x: Float[Array, " inputs"], recurrent: Recurrent
    ) -> Float[Array, " hidden"]:
        """`h'`."""
        # Apart: a CPU multiplies by two matrices of 256 columns in two thirds of the time that one
        # of 512 takes, and the gradient does not put together what the gates take apart.
        drive_f, drive_n = (rtrl.exact_product(self.w[:, i : i + 1], x)[:, 0] for i in range(2))
        f = jax.nn.sigmoid(drive_f + self.b[:, 0] + recurrent(self.u_f, state)[:, 0])
        n = jnp.tanh(drive_n + self.b[:, 1] + recurrent(self.u_n, f * state)[:, 0])
        return (1 - f) * state + f * n


register("mgu", MGU)
