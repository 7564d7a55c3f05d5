"""Linear attention as a recurrence."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractTwoAxisCell
from zoo.parts import Linear, check_sizes
from zoo.registry import register


class LinearAttention(AbstractTwoAxisCell):
    r"""Causal linear attention (FART): a sum of outer products, and of keys to divide by.

        X' = X + φ(W_k x) (W_v x)ᵀ
        z' = z + φ(W_k x)
        y  = MLP(X'ᵀ φ(W_q x) / (z'ᵀ φ(W_q x)) + W_x x)        φ(u) = 1 + elu(u)

    The state is the matrix `[X, z]`. All of the past weighs the same. The denominator is a sum of
    positive numbers and is kept away from 0 besides. The MLP is `W_2 gelu(W_1 u + b_1) + b_2`; W_x
    is the identity where `x` is as wide as the cell.

    Source: *Transformers are RNNs*, Katharopoulos et al. (2020), equations 16 to 20.
    """

    key: Float[Array, "keys inputs"]
    value: Float[Array, "hidden inputs"]
    query: Float[Array, "keys inputs"]
    skip: Linear | None
    first: Linear
    second: Linear
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
        parts = jax.random.split(key, 6)
        bound = inputs**-0.5
        self.key, self.value, self.query = (
            jax.random.uniform(k, (n, inputs), minval=-bound, maxval=bound)
            for k, n in zip(parts, (keys, hidden, keys), strict=False)
        )
        wide = inputs == hidden
        self.skip = None if wide else Linear(inputs, hidden, False, key=parts[3])
        self.first = Linear(hidden, hidden, key=parts[4])
        self.second = Linear(hidden, hidden, key=parts[5])
        self.inputs, self.hidden = inputs, hidden

    def recurrence_parameters(self) -> rtrl.Axes:
        """W_k belongs to rows, W_v to columns."""
        return rtrl.Axes(rows=self.key, columns=self.value)

    def coefficients(self, parameters: rtrl.Axes, xs: Array) -> tuple[Array, Array]:
        """`(1, φ(W_k x) [W_v x, 1]ᵀ)`."""
        keys = 1 + jax.nn.elu(xs @ parameters.rows.T)
        values = xs @ parameters.columns.T
        values = jnp.concatenate([values, jnp.ones_like(values[:, :1])], 1)
        return jnp.ones((1, 1), keys.dtype), keys[:, :, None] * values[:, None, :]

    def readout(
        self, state: Float[Array, "keys hidden_and_one"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`MLP(Xᵀ φ(W_q x) / (zᵀ φ(W_q x)) + W_x x)`."""
        both = (1 + jax.nn.elu(x @ self.query.T)) @ state
        attended = both[:-1] / jnp.maximum(both[-1], 1e-6)
        u = attended + (x if self.skip is None else self.skip(x))
        return self.second(jax.nn.gelu(self.first(u)))


register("linear_attention", LinearAttention)
