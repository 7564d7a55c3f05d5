"""Gated Recurrent Unit."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from zoo._init import check_sizes, linear_weights
from zoo.kinds import AbstractDenseCell


class GRU(AbstractDenseCell):
    r"""Gated Recurrent Unit.

        r = σ(W_r x + U_r h + b_r)
        z = σ(W_z x + U_z h + b_z)
        n = tanh(W_n x + b_n + r ⊙ (U_n h + b_u))
        h' = (1 - z) ⊙ n + z ⊙ h
        y = h'

    Dense: exact RTRL keeps hidden × parameters numbers.

    Source: Cho et al. (2014), with the reset gate after the product as in cuDNN and
    `equinox.nn.GRUCell`, whose parameters it has.
    """

    w: Float[Array, "three_hidden inputs"]
    u: Float[Array, "three_hidden hidden"]
    b: Float[Array, " three_hidden"]
    b_u: Float[Array, " hidden"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, key: Array):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of units, and width of `y`.
        - `key`: PRNG key.

        **Raises:**

        `ValueError` naming the argument, its value and the rule.
        """
        check_sizes(inputs=inputs, hidden=hidden)
        keys = jax.random.split(key, 4)
        self.w = linear_weights(keys[0], (3 * hidden, inputs), hidden)
        self.u = linear_weights(keys[1], (3 * hidden, hidden), hidden)
        self.b = linear_weights(keys[2], (3 * hidden,), hidden)
        self.b_u = linear_weights(keys[3], (hidden,), hidden)
        self.inputs, self.hidden = inputs, hidden

    @property
    def outputs(self) -> int:
        """`hidden`."""
        return self.hidden

    def init_state(self) -> Float[Array, " hidden"]:
        """Zeros."""
        return jnp.zeros(self.hidden, self.w.dtype)

    def update(
        self, state: Float[Array, " hidden"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`h'`."""
        w_r, w_z, w_n = jnp.split(self.w @ x + self.b, 3)
        u_r, u_z, u_n = jnp.split(self.u @ state, 3)
        r, z = jax.nn.sigmoid(w_r + u_r), jax.nn.sigmoid(w_z + u_z)
        n = jnp.tanh(w_n + r * (u_n + self.b_u))
        return (1 - z) * n + z * state

    def readout(self, state: Float[Array, " hidden"], x: Array) -> Float[Array, " hidden"]:
        """`h'`."""
        return state
