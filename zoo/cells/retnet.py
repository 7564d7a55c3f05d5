"""Retention."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float

import rtrl
from zoo.kinds import AbstractTwoAxisCell
from zoo.parts import (
    Linear,
    check_heads,
    check_norm_width,
    check_sizes,
    layer_norm,
    linear_weights,
    to_complex,
)
from zoo.registry import register


class RetNet(AbstractTwoAxisCell):
    r"""Multi-scale retention: linear attention that forgets and rotates, at one rate per head.

    For each head, with keys and queries as complex vectors of half their width:

        X' = γ e^{iθ} ⊙ X + (W_k x / √n) (W_v x)ᵀ
        o  = Re(X'ᵀ conj(W_q x))
        y  = W_o (swish(W_g x) ⊙ groupnorm(o))

    The rotation in the state is that of the position in the paper's keys and queries, without an
    index of time. `γ_h = 1 - 2^{-5-h}` and θ (10000^{-2j/n}) are fixed.

    Source: *Retentive Network: A Successor to Transformer for Large Language Models*, Sun et al.
    (2023), section 2.
    """

    key: Float[Array, "parts heads keys inputs"]
    query: Float[Array, "parts heads keys inputs"]
    value: Float[Array, "heads values inputs"]
    gate: Linear
    output: Linear
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, heads: int = 1, key: Array):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of values and `y`; each head has its part of it, and as many keys.
        - `heads`: a divisor of `hidden`, at most half of it.
        """
        check_sizes(inputs=inputs, hidden=hidden)
        check_heads(hidden, heads)
        check_norm_width(heads=heads, hidden=hidden)
        values = hidden // heads
        keys = max(1, values // 2)
        parts = jax.random.split(key, 5)
        self.key = linear_weights(parts[0], (2, heads, keys, inputs), inputs)
        self.query = linear_weights(parts[1], (2, heads, keys, inputs), inputs)
        self.value = linear_weights(parts[2], (heads, values, inputs), inputs)
        self.gate = Linear(inputs, hidden, False, key=parts[3])
        self.output = Linear(hidden, hidden, False, key=parts[4])
        self.inputs, self.hidden = inputs, hidden

    def recurrence_parameters(self) -> rtrl.Axes:
        """W_k belongs to rows, W_v to columns."""
        return rtrl.Axes(rows=(self.key[0], self.key[1]), columns=self.value)

    def coefficients(self, parameters: rtrl.Axes, xs: Array) -> tuple[Array, Array]:
        """`(γ e^{iθ}, (W_k x / √n) (W_v x)ᵀ)`."""
        real, imaginary = parameters.rows
        heads, keys, _ = real.shape
        scale = (2 * keys) ** -0.5
        k_real, k_imag = (scale * jnp.einsum("hki,ti->thk", w, xs) for w in (real, imaginary))
        v = jnp.einsum("hvi,ti->thv", parameters.columns, xs)[:, :, None, :]
        drive = to_complex(k_real[..., None] * v, k_imag[..., None] * v)
        gamma = 1 - 2.0 ** (-5 - jnp.arange(heads, dtype=float))
        theta = 10000.0 ** (-jnp.arange(keys) / keys)
        turn = to_complex(jnp.cos(theta), jnp.sin(theta))[None]
        a = gamma[:, None].astype(turn.dtype) * turn
        return a[..., None].astype(drive.dtype), drive

    def readout(
        self, state: Complex[Array, "heads keys values"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`W_o (swish(W_g x) ⊙ groupnorm(o))`."""
        q_real, q_imag = self.query @ x
        o = jnp.einsum("hk,hkv->hv", q_real, state.real)
        o = o + jnp.einsum("hk,hkv->hv", q_imag, state.imag)
        return self.output(jax.nn.silu(self.gate(x)) * layer_norm(o).ravel())


register("retnet", RetNet)
