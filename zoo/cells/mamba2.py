"""State space duality: a matrix memory with one decay for each head."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractOuterProductCell
from zoo.parts import Linear, check_heads, check_sizes, linear_weights, rms_norm, step_biases
from zoo.registry import register


class Mamba2(AbstractOuterProductCell):
    r"""The recurrence of Mamba-2 (SSD): a selective state space with one decay for each head.

    u, k and q are shared out: every head h has its part of u and its own step Δ, and all heads the
    same k and q:

        u, k, q = silu(W_u x), silu(W_k x), silu(W_q x)        k and q are B and C of the paper
        Δ_h = softplus(w_h x + b_h)
        S_h' = exp(-Δ_h exp(a_h)) S_h + Δ_h k u_hᵀ
        o_h = S_h'ᵀ q + d_h u_h
        y = W_o (g ⊙ rms(o ⊙ silu(W_z x)))                     rms(u) = u / √(mean u²)

    Δ starts between 0.001 and 0.1, exp(a) between 1 and 16. Every row of S decays by the same Δ, so
    that RTRL keeps the sensitivity of w, b and a once for each row, and that of W_k for each head.

    The convolution in front of the activation is left to `zoo.Windowed`, which W_u, W_k and W_q
    then are a part of.

    Source: *Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured
    State Space Duality*, Dao & Gu (2024), section 7, with one group of B and C.
    """

    value: Float[Array, "hidden inputs"]
    key: Float[Array, "states inputs"]
    query: Float[Array, "states inputs"]
    time_step: Linear
    a_log: Float[Array, " heads"]
    d: Float[Array, " heads"]
    gate: Linear
    g: Float[Array, " hidden"]
    output: Linear
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    heads: int = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, states: int = 16, heads: int = 1, key: Array):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of u and of `y`.
        - `states`: width of k and q.
        - `heads`: a divisor of `hidden`; each has its part of u.
        """
        check_sizes(inputs=inputs, hidden=hidden, states=states)
        check_heads(hidden, heads)
        keys = jax.random.split(key, 8)
        self.value = linear_weights(keys[0], (hidden, inputs), inputs)
        self.key = linear_weights(keys[1], (states, inputs), inputs)
        self.query = linear_weights(keys[2], (states, inputs), inputs)
        self.time_step = eqx.tree_at(
            lambda linear: linear.bias,
            Linear(inputs, heads, key=keys[4]),
            step_biases(keys[3], heads),
        )
        self.a_log = jnp.log(jax.random.uniform(keys[5], (heads,), minval=1.0, maxval=16.0))
        self.d = jnp.ones(heads)
        self.gate = Linear(inputs, hidden, False, key=keys[6])
        self.g = jnp.ones(hidden)
        self.output = Linear(hidden, hidden, False, key=keys[7])
        self.inputs, self.hidden, self.heads = inputs, hidden, heads

    def recurrence_parameters(self) -> rtrl.Axes:
        """W_k, w, b and a belong to rows, each with a copy of its own; W_u to columns."""
        states = len(self.key)
        keys = jnp.broadcast_to(self.key[None], (self.heads, *self.key.shape))
        of_rows = lambda p: jnp.repeat(p[:, None], states, axis=1)  # noqa: E731
        step = of_rows(self.time_step.weight), of_rows(self.time_step.bias), of_rows(self.a_log)
        return rtrl.Axes(
            rows=(keys, *step), columns=self.value.reshape(self.heads, -1, self.inputs)
        )

    @property
    def decays_alike(self) -> bool:
        """There is one time step for each head."""
        return True

    def written(self, parameters: rtrl.Axes, xs: Array) -> tuple[Array, Array, Array]:
        """`(-Δ exp(a), Δ k, u)`."""
        keys, step, bias, a_log = parameters.rows
        project = lambda w: jnp.einsum("hni,ti->thn", w, xs)  # noqa: E731
        delta = jax.nn.softplus(project(step) + bias[None])
        k = jax.nn.silu(project(keys))
        return -delta * jnp.exp(a_log)[None], delta * k, jax.nn.silu(project(parameters.columns))

    def queries(self, xs: Array) -> Float[Array, "time heads states"]:
        """`q`, for every head."""
        q = jax.nn.silu(xs @ self.query.T)
        return jnp.broadcast_to(q[:, None], (len(xs), self.heads, q.shape[-1]))

    def respond(
        self, read: Float[Array, "heads values"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`W_o (g ⊙ rms(o ⊙ silu(W_z x)))`."""
        u = jax.nn.silu(x @ self.value.T).reshape(self.heads, -1)
        o = (read + self.d[:, None] * u).ravel() * jax.nn.silu(self.gate(x))
        return self.output(self.g * rms_norm(o))


register("mamba2", Mamba2)
