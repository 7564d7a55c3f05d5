"""Gated linear attention."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractOuterProductCell
from zoo.parts import Linear, check_heads, check_norm_width, check_sizes, layer_norm, linear_weights
from zoo.registry import register

_TEMPERATURE = 16


class GatedLinearAttention(AbstractOuterProductCell):
    r"""Gated linear attention (GLA): every key of a matrix memory decays as the input says.

    For every head:

        q, k, v = W_q x, W_k x, W_v x
        α  = σ(W_α x + b_α)^{1/16}                    W_α of rank `rank`
        S' = α 1ᵀ ⊙ S + k vᵀ
        o  = LN(S'ᵀ q)                                LN without parameters
        y  = W_o (swish(W_r x + b_r) ⊙ o)             o of all heads

    Source: *Gated Linear Attention Transformers with Hardware-Efficient Training*, Yang et al.
    (2024), section 4.
    """

    key: Float[Array, "heads_and_keys inputs"]
    value: Float[Array, "hidden inputs"]
    query: Float[Array, "heads_and_keys inputs"]
    decay_down: Float[Array, "rank inputs"]
    decay_up: Float[Array, "heads_and_keys rank"]
    decay_bias: Float[Array, " heads_and_keys"]
    gate: Linear
    output: Linear
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    heads: int = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        keys: int | None = None,
        heads: int = 1,
        rank: int = 16,
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of the values and of `y`.
        - `keys`: width of a head's keys and queries; half that of its values by default.
        - `heads`: a divisor of `hidden`, at most half of it; each has its part of the values.
        - `rank`: of W_α.
        """
        check_sizes(inputs=inputs, hidden=hidden, rank=rank)
        check_heads(hidden, heads)
        check_norm_width(heads=heads, hidden=hidden)
        keys = hidden // heads // 2 if keys is None else keys
        check_sizes(keys=keys)
        parts = jax.random.split(key, 7)
        self.key = linear_weights(parts[0], (heads * keys, inputs), inputs)
        self.value = linear_weights(parts[1], (hidden, inputs), inputs)
        self.query = linear_weights(parts[2], (heads * keys, inputs), inputs)
        self.decay_down = linear_weights(parts[3], (rank, inputs), inputs)
        self.decay_up = linear_weights(parts[4], (heads * keys, rank), rank)
        self.decay_bias = jnp.zeros(heads * keys)
        self.gate = Linear(inputs, hidden, key=parts[5])
        self.output = Linear(hidden, hidden, False, key=parts[6])
        self.inputs, self.hidden, self.heads = inputs, hidden, heads

    def recurrence_parameters(self) -> rtrl.Axes:
        """W_k, W_α and b_α belong to rows, W_v to columns."""
        decay = self.decay_up @ self.decay_down
        by_heads = lambda w: w.reshape(self.heads, -1, *w.shape[1:])  # noqa: E731
        rows = (by_heads(self.key), by_heads(decay), by_heads(self.decay_bias))
        return rtrl.Axes(rows=rows, columns=by_heads(self.value))

    def written(self, parameters: rtrl.Axes, xs: Array) -> tuple[Array, Array, Array]:
        """`(log α, k, v)`."""
        key, decay, bias = parameters.rows
        keys, logits, values = (
            jnp.einsum("hni,ti->thn", w, xs) for w in (key, decay, parameters.columns)
        )
        return jax.nn.log_sigmoid(logits + bias[None]) / _TEMPERATURE, keys, values

    def queries(self, xs: Array) -> Float[Array, "time heads keys"]:
        """`W_q x`."""
        return (xs @ self.query.T).reshape(len(xs), self.heads, -1)

    def respond(
        self, read: Float[Array, "heads values"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`W_o (swish(W_r x + b_r) ⊙ o)`."""
        return self.output(jax.nn.silu(self.gate(x)) * layer_norm(read).ravel())


register("gated_linear_attention", GatedLinearAttention)
