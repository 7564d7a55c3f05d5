"""Matrix LSTM."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import rtrl
import scan
from zoo.cell import AbstractCell
from zoo.parts import (
    NOTHING,
    Linear,
    decayed,
    decaying_maximum,
    keys_of_a_head,
    linear_weights,
)
from zoo.registry import register

State = tuple[Float[Array, "heads keys values_and_one"], Float[Array, " heads"]]


class MLSTM(AbstractCell):
    r"""mLSTM, the matrix memory of the xLSTM.

        i, f = exp(w_i x + b_i), σ(w_f x + b_f)
        q, k, v = W_q x + b_q, (W_k x + b_k) / √n, W_v x + b_v
        C' = f C + i k vᵀ,   n' = f n + i k
        y  = σ(W_o x + b_o) ⊙ C'ᵀ q / max(|n'ᵀ q|, 1)

    Every head has gates, a memory and a part of y of its own, and n is the width of its keys. The
    state is `([C', n'] e^{-m}, m)` of each, with the stabilizer `m' = max(log f + m, log i)` of the
    paper, which cancels in y, and is a constant to derivatives.

    Source: *xLSTM: Extended Long Short-Term Memory*, Beck et al. (2024), equations 19 to 27.
    """

    gates: Float[Array, "two_of_heads inputs"]
    gates_bias: Float[Array, " two_of_heads"]
    query: Linear
    key: Linear
    value: Linear
    output: Linear
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    heads: int = eqx.field(static=True)

    def __init__(
        self, inputs: int, hidden: int, *, keys: int | None = None, heads: int = 1, key: Array
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of the values and of `y`.
        - `keys`: width of a head's keys and queries; that of its values by default.
        - `heads`: a divisor of `hidden`; each has its part of the values.
        """
        keys = keys_of_a_head(inputs, hidden, keys, heads)
        parts = jax.random.split(key, 5)
        self.gates = linear_weights(parts[0], (2 * heads, inputs), inputs)
        self.gates_bias = jnp.repeat(jnp.array([0.0, 3.0]), heads)
        self.query = Linear(inputs, heads * keys, key=parts[1])
        self.key = Linear(inputs, heads * keys, key=parts[2])
        self.value = Linear(inputs, hidden, key=parts[3])
        self.output = Linear(inputs, hidden, key=parts[4])
        self.inputs, self.hidden, self.heads = inputs, hidden, heads

    def init_state(self) -> State:
        """Zeros, and a very low maximum."""
        dtype, heads = self.gates.dtype, self.heads
        shape = heads, self.key.weight.shape[0] // heads, self.hidden // heads + 1
        return jnp.zeros(shape, dtype), jnp.full(heads, NOTHING, dtype)

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Rows and columns."""
        return rtrl.TwoAxes()

    def recurrence_parameters(self) -> rtrl.Axes:
        """W_k and the gates (once for every row) belong to rows, W_v to columns."""
        heads, keys = self.heads, self.key.weight.shape[0] // self.heads
        gates = jnp.moveaxis(self.gates.reshape(2, heads, 1, -1), 0, 2)
        bias = self.gates_bias.reshape(2, heads).T[:, None]
        key, value = (
            jax.tree.map(lambda w: w.reshape(heads, -1, *w.shape[1:]), part)
            for part in (self.key, self.value)
        )
        rows = (
            (key.weight, key.bias),
            jnp.broadcast_to(gates, (heads, keys, *gates.shape[2:])),
            jnp.broadcast_to(bias, (heads, keys, 2)),
        )
        return rtrl.Axes(rows=rows, columns=(value.weight, value.bias))

    def update(self, state: State, x: Float[Array, " inputs"]) -> State:
        """`([C', n'] e^{-m'}, m')`."""
        memory, m = state
        log_i, log_f, keys, values = (part[0] for part in self._projected(_parts(self), x[None]))
        new, kept = decayed(m[:, None], log_f, log_i)
        written = jnp.exp(log_i - new) * keys
        return kept[..., None] * memory + written[..., None] * values[:, None], new[:, 0]

    def states(
        self,
        parameters: rtrl.Axes,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> Any:
        a, b, m = self._along(parameters, state, xs, begin)
        return scan.linear(a, b, state[0], begin, method=method), m

    def surrogate_states(
        self,
        parameters: rtrl.Axes,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        states: Any,
    ) -> Any:
        a, b, m = self._along(parameters, state, xs, begin)
        return scan.linear(a, b, state[0], begin, states=states[0]), m

    def scan_in_chunks(
        self, state: State, xs: Array, begin: Bool[Array, " time"] | None
    ) -> tuple[State, Array]:
        log_kept, keys, values, m = self._written(_parts(self), state, xs, begin)
        queries = jax.vmap(self._queries)(xs)
        memory, reads = scan.outer_products(queries, keys, values, state[0], log_kept, begin)
        return (memory, m[-1]), jax.vmap(self._respond)(reads, m, xs)

    def readout(self, state: State, x: Float[Array, " inputs"]) -> Float[Array, " hidden"]:
        """`σ(W_o x + b_o) ⊙ C'ᵀ q / max(|n'ᵀ q|, 1)`."""
        memory, m = state
        return self._respond((self._queries(x)[:, None] @ memory)[:, 0], m, x)

    def _queries(self, x):
        return self.query(x).reshape(self.heads, -1)

    def _respond(self, read, m, x):
        floor = jnp.exp(-jax.lax.stop_gradient(m))[:, None]
        answer = read[:, :-1] / jnp.maximum(jnp.abs(read[:, -1:]), floor)
        return jax.nn.sigmoid(self.output(x)) * answer.ravel()

    def _along(self, parameters, state, xs, begin):
        """The coefficients of the memory, and the maxima."""
        # The rows' copies of the gates are equal: one product would do, but each row has its own
        # sensitivity.
        log_kept, keys, values, m = self._written(parameters, state, xs, begin)
        return jnp.exp(log_kept)[..., None], keys[..., None] * values[:, :, None], m

    def _written(self, parameters, state, xs, begin):
        """`(log of what is kept, k i e^{-m}, [v, 1], m)` of all steps."""
        log_i, log_f, keys, values = self._projected(parameters, xs)
        start = jnp.broadcast_to(state[1][:, None], log_i.shape[1:])
        m, log_kept = decaying_maximum(log_f, log_i, start, begin)
        return log_kept, jnp.exp(log_i - m) * keys, values, m[..., 0]

    @staticmethod
    def _projected(parameters, xs):
        """`(log i, log f, k, [v, 1])` of every head; gates of every row, or one for all."""
        (key, key_bias), gates, bias = parameters.rows
        value, value_bias = parameters.columns
        keys = jnp.einsum("hki,ti->thk", key, xs) + key_bias[None]
        values = jnp.einsum("hvi,ti->thv", value, xs) + value_bias[None]
        values = jnp.concatenate([values, jnp.ones_like(values[..., :1])], -1)
        logits = jnp.einsum("hkgi,ti->thkg", gates, xs) + bias[None]
        log_f = jax.nn.log_sigmoid(logits[..., 1])
        return logits[..., 0], log_f, keys * key.shape[1] ** -0.5, values


def _parts(cell):
    """The recurrence's parameters, with the gates of a head's first row: those of all."""
    parameters = cell.recurrence_parameters()
    key, gates, bias = parameters.rows
    return rtrl.Axes(rows=(key, gates[:, :1], bias[:, :1]), columns=parameters.columns)


register("mlstm", MLSTM)
