"""Elman network."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rtrl import exact_product
from zoo.kinds import AbstractDenseCell, Recurrent, check_rtrl
from zoo.parts import check_sizes, linear_weights


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
    rtrl: str = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, rtrl: str = "exact", key: Array):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of units, and width of `y`.
        - `rtrl`: `"exact"`, `"snap1"`, `"rflo"` or `"uoro"`.
        - `key`: PRNG key.

        **Raises:**

        `ValueError` naming the argument, its value and the rule.
        """
        check_sizes(inputs=inputs, hidden=hidden)
        keys = jax.random.split(key, 3)
        self.w = linear_weights(keys[0], (hidden, 1, inputs), hidden)
        self.u = linear_weights(keys[1], (hidden, 1, hidden), hidden)
        self.b = linear_weights(keys[2], (hidden, 1), hidden)
        self.inputs, self.hidden, self.rtrl = inputs, hidden, check_rtrl(rtrl)

    @property
    def outputs(self) -> int:
        """`hidden`."""
        return self.hidden

    def init_state(self) -> Float[Array, " hidden"]:
        """Zeros."""
        return jnp.zeros(self.hidden, self.w.dtype)

    def transition(
        self, state: Float[Array, " hidden"], x: Float[Array, " inputs"], recurrent: Recurrent
    ) -> Float[Array, " hidden"]:
        """`h'`."""
        return jnp.tanh(exact_product(self.w, x) + recurrent(self.u, state) + self.b)[:, 0]

    def readout(self, state: Float[Array, " hidden"], x: Array) -> Float[Array, " hidden"]:
        """`h'`."""
        return state
