"""Linear attention as a recurrence."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractOuterProductCell
from zoo.parts import Linear, keys_of_a_head, linear_weights
from zoo.registry import register


class LinearAttention(AbstractOuterProductCell):
    r"""Causal linear attention (FART): a sum of outer products, and of keys to divide by.

        X' = X + φ(W_k x) (W_v x)ᵀ
        z' = z + φ(W_k x)
        y  = MLP(X'ᵀ φ(W_q x) / (z'ᵀ φ(W_q x)) + W_x x)        φ(u) = 1 + elu(u)

    The state is the matrix `[X, z]` of every head, whose answers are put together in front of the
    MLP. All of the past weighs the same. The denominator is a sum of
    positive numbers and is kept away from 0 besides. The MLP is `W_2 gelu(W_1 u + b_1) + b_2`; W_x
    is the identity where `x` is as wide as the cell.

    Source: *Transformers are RNNs*, Katharopoulos et al. (2020), equations 16 to 20.
    """

    key: Float[Array, "heads_and_keys inputs"]
    value: Float[Array, "hidden inputs"]
    query: Float[Array, "heads_and_keys inputs"]
    skip: Linear | None
    first: Linear
    second: Linear
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
        parts = jax.random.split(key, 6)
        self.key, self.value, self.query = (
            linear_weights(k, (n, inputs), inputs)
            for k, n in zip(parts, (heads * keys, hidden, heads * keys), strict=False)
        )
        wide = inputs == hidden
        self.skip = None if wide else Linear(inputs, hidden, False, key=parts[3])
        self.first = Linear(hidden, hidden, key=parts[4])
        self.second = Linear(hidden, hidden, key=parts[5])
        self.inputs, self.hidden, self.heads = inputs, hidden, heads

    def recurrence_parameters(self) -> rtrl.Axes:
        """W_k belongs to rows, W_v to columns."""
        key, value = (w.reshape(self.heads, -1, self.inputs) for w in (self.key, self.value))
        return rtrl.Axes(rows=key, columns=value)

    def written(self, parameters: rtrl.Axes, xs: Array) -> tuple[None, Array, Array]:
        """`(log 1, φ(W_k x), [W_v x, 1])`."""
        keys = 1 + jax.nn.elu(jnp.einsum("hki,ti->thk", parameters.rows, xs))
        values = jnp.einsum("hvi,ti->thv", parameters.columns, xs)
        return None, keys, jnp.concatenate([values, jnp.ones_like(values[..., :1])], -1)

    def queries(self, xs: Array) -> Float[Array, "time heads keys"]:
        """`φ(W_q x)`."""
        return 1 + jax.nn.elu(xs @ self.query.T).reshape(len(xs), self.heads, -1)

    def respond(
        self, read: Float[Array, "heads values_and_one"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`MLP(Xᵀ φ(W_q x) / (zᵀ φ(W_q x)) + W_x x)`."""
        attended = (read[:, :-1] / jnp.maximum(read[:, -1:], 1e-6)).ravel()
        u = attended + (x if self.skip is None else self.skip(x))
        return self.second(jax.nn.gelu(self.first(u)))


register("linear_attention", LinearAttention)
