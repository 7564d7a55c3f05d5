"""Long Short-Term Memory."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractDenseCell, Recurrent
from zoo.parts import check_sizes, linear_weights
from zoo.registry import register

Cells = tuple[Float[Array, " hidden"], Float[Array, " hidden"]]


class LSTM(AbstractDenseCell):
    r"""Long Short-Term Memory with forget gate.

        i = σ(W_i x + U_i h + b_i)
        f = σ(W_f x + U_f h + b_f)
        g = tanh(W_g x + U_g h + b_g)
        o = σ(W_o x + U_o h + b_o)
        c' = f ⊙ c + i ⊙ g
        h' = o ⊙ tanh(c')
        y = h'

    The state is `(c, h)`. Dense: exact RTRL keeps 2 hidden × parameters numbers; see
    `zoo.AbstractDenseCell` for the others.

    Source: Hochreiter & Schmidhuber (1997); forget gate: Gers et al. (2000). The gates are in the
    order of `equinox.nn.LSTMCell`.
    """

    w: Float[Array, "hidden four inputs"]
    u: Float[Array, "hidden four hidden"]
    b: Float[Array, "hidden four"]
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
        self.w = linear_weights(keys[0], (hidden, 4, inputs), hidden)
        self.u = linear_weights(keys[1], (hidden, 4, hidden), hidden)
        self.b = linear_weights(keys[2], (hidden, 4), hidden)
        self.inputs, self.hidden, self.sensitivity = inputs, hidden, sensitivity

    def init_state(self) -> Cells:
        return jnp.zeros(self.hidden, self.w.dtype), jnp.zeros(self.hidden, self.w.dtype)

    def transition(self, state: Cells, x: Float[Array, " inputs"], recurrent: Recurrent) -> Cells:
        """`(c', h')`."""
        c, h = state
        i, f, g, o = (rtrl.exact_product(self.w, x) + recurrent(self.u, h) + self.b).T
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return c, jax.nn.sigmoid(o) * jnp.tanh(c)

    def readout(self, state: Cells, x: Array) -> Float[Array, " hidden"]:
        """`h'`."""
        return state[1]


register("lstm", LSTM)
