"""Matrix LSTM."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import rtrl
import scan
from zoo.cell import AbstractCell
from zoo.parts import NOTHING, Linear, check_sizes, decayed, decaying_maximum, linear_weights
from zoo.registry import register

State = tuple[Float[Array, "keys hidden_and_one"], Float[Array, ""]]


class MLSTM(AbstractCell):
    r"""mLSTM, the matrix memory of the xLSTM, with one head.

        i, f = exp(w_i x + b_i), σ(w_f x + b_f)
        q, k, v = W_q x + b_q, (W_k x + b_k) / √n, W_v x + b_v
        C' = f C + i k vᵀ,   n' = f n + i k
        y  = σ(W_o x + b_o) ⊙ C'ᵀ q / max(|n'ᵀ q|, 1)

    The state is `([C', n'] e^{-m}, m)` with the stabilizer `m' = max(log f + m, log i)` of the
    paper, which cancels in y, and is a constant to derivatives.

    Source: *xLSTM: Extended Long Short-Term Memory*, Beck et al. (2024), equations 19 to 27.
    """

    gates: Float[Array, "two inputs"]
    gates_bias: Float[Array, " two"]
    query: Linear
    key: Linear
    value: Linear
    output: Linear
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, keys: int | None = None, key: Array):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of the values and of `y`.
        - `keys`: width of keys and queries; `hidden` by default.
        """
        keys = hidden if keys is None else keys
        check_sizes(inputs=inputs, hidden=hidden, keys=keys)
        parts = jax.random.split(key, 5)
        self.gates = linear_weights(parts[0], (2, inputs), inputs)
        self.gates_bias = jnp.array([0.0, 3.0])
        self.query = Linear(inputs, keys, key=parts[1])
        self.key = Linear(inputs, keys, key=parts[2])
        self.value = Linear(inputs, hidden, key=parts[3])
        self.output = Linear(inputs, hidden, key=parts[4])
        self.inputs, self.hidden = inputs, hidden

    def init_state(self) -> State:
        """Zeros, and a very low maximum."""
        dtype, keys = self.gates.dtype, self.key.weight.shape[0]
        return jnp.zeros((keys, self.hidden + 1), dtype), jnp.full((), NOTHING, dtype)

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Rows and columns."""
        return rtrl.TwoAxes()

    def recurrence_parameters(self) -> rtrl.Axes:
        """W_k and the gates (once for every row) belong to rows, W_v to columns."""
        keys = self.key.weight.shape[0]
        gates = jnp.broadcast_to(self.gates, (keys, *self.gates.shape))
        bias = jnp.broadcast_to(self.gates_bias, (keys, 2))
        return rtrl.Axes(rows=(self.key, gates, bias), columns=self.value)

    def update(self, state: State, x: Float[Array, " inputs"]) -> State:
        """`([C', n'] e^{-m'}, m')`."""
        memory, m = state
        log_i, log_f, drive = (
            part[0] for part in self._projected(self.recurrence_parameters(), x[None])
        )
        new, kept = decayed(m, log_f, log_i)
        added = jnp.exp(log_i - new)
        return kept[:, None] * memory + added[:, None] * drive, new[0]

    def states(
        self,
        parameters: rtrl.Axes,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> Any:
        log_i, log_f, drive = self._projected(parameters, xs)
        start = jnp.broadcast_to(state[1], log_i.shape[1:])
        m, kept = decaying_maximum(log_f, log_i, start, begin)
        added = jnp.exp(log_i - m)
        drive = added[:, :, None] * drive
        return scan.linear(kept[:, :, None], drive, state[0], begin, method=method), m[:, 0]

    def readout(self, state: State, x: Float[Array, " inputs"]) -> Float[Array, " hidden"]:
        """`σ(W_o x + b_o) ⊙ C'ᵀ q / max(|n'ᵀ q|, 1)`."""
        memory, m = state
        both = self.query(x) @ memory
        divisor = jnp.maximum(jnp.abs(both[-1]), jnp.exp(-jax.lax.stop_gradient(m)))
        return jax.nn.sigmoid(self.output(x)) * both[:-1] / divisor

    @staticmethod
    def _projected(parameters, xs):
        """`(log i, log f, k [v, 1]ᵀ)` of every row."""
        key, gates, bias = parameters.rows
        keys = jax.vmap(key)(xs) * bias.shape[0] ** -0.5
        values = jax.vmap(parameters.columns)(xs)
        values = jnp.concatenate([values, jnp.ones_like(values[:, :1])], 1)
        # The rows' copies of the gates are equal: one product would do, but each row has its own
        # sensitivity.
        logits = jnp.tensordot(xs, gates, (1, 2)) + bias[None]
        return (
            logits[:, :, 0],
            jax.nn.log_sigmoid(logits[:, :, 1]),
            keys[:, :, None] * values[:, None, :],
        )


register("mlstm", MLSTM)
