"""Selective state space model."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractTwoAxisCell
from zoo.parts import check_sizes, linear_weights, step_biases
from zoo.registry import register


class S6(AbstractTwoAxisCell):
    r"""Selective state space model, the recurrence of Mamba.

    Every channel i has N states, which decay and listen as the input says:

        u = silu(W_u x)
        Δ = softplus(W_Δ r + b_Δ)        W_Δ of rank `rank`
        S'_ij = exp(Δ_i A_ij) S_ij + Δ_i u_i (W_B r)_j
        y = (S' W_C r + D ⊙ u) ⊙ silu(W_z x)

    `A = -exp(A_log)` starts as -1 … -N in every channel; Δ between 0.001 and 0.1. `reads` says what
    r is, from which the layer selects:

    - `"signal"`: r = u, what is scanned, as in Mamba. Then W_u acts on all of the state, and RTRL
      keeps state × parameters numbers: for small cells, or BPTT.
    - `"input"`: r = x. Then every parameter belongs to an axis of the state, and RTRL keeps N
      numbers for one of a channel, and as many as there are channels for one of a state.

    Mamba's convolution in front of the activation is left to `zoo.Windowed`, which W_u then is a
    part of, and the projection behind to `zoo.Stack`.

    Source: *Mamba: Linear-Time Sequence Modeling with Selective State Spaces*, Gu & Dao (2023),
    algorithm 2 and section 3.6.
    """

    a_log: Float[Array, "hidden states"]
    input: Float[Array, "hidden inputs"]
    step_down: Float[Array, "rank read"]
    step_up: Float[Array, "hidden rank"]
    step_bias: Float[Array, " hidden"]
    b: Float[Array, "states read"]
    c: Float[Array, "states read"]
    d: Float[Array, " hidden"]
    gate: Float[Array, "hidden inputs"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    reads: str = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        states: int = 16,
        rank: int | None = None,
        reads: str = "input",
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of channels, and width of `y`.
        - `states`: N, states per channel.
        - `rank`: of W_Δ; a sixteenth of the width of r, rounded up, by default.
        - `reads`: `"input"` or `"signal"`.
        """
        if reads not in ("input", "signal"):
            raise ValueError(f"`reads` (={reads!r}) must be one of input, signal.")
        check_sizes(inputs=inputs, hidden=hidden, states=states)
        width = inputs if reads == "input" else hidden
        rank = -(-width // 16) if rank is None else rank
        check_sizes(rank=rank)
        keys = jax.random.split(key, 7)
        self.a_log = jnp.tile(jnp.log(jnp.arange(1.0, states + 1))[None], (hidden, 1))
        self.input = linear_weights(keys[0], (hidden, inputs), inputs)
        self.step_down = linear_weights(keys[1], (rank, width), width)
        self.step_up = linear_weights(keys[2], (hidden, rank), rank)
        self.step_bias = step_biases(keys[3], hidden)
        self.b = linear_weights(keys[4], (states, width), width)
        self.c = linear_weights(keys[5], (states, width), width)
        self.d = jnp.ones(hidden)
        self.gate = linear_weights(keys[6], (hidden, inputs), inputs)
        self.inputs, self.hidden, self.reads = inputs, hidden, reads

    @property
    def structure(self) -> rtrl.AbstractStructure:
        return rtrl.TwoAxes() if self.reads == "input" else rtrl.Dense()

    def recurrence_parameters(self) -> rtrl.Axes:
        """A belongs to entries; W_u, W_Δ and b_Δ to channels; W_B to states."""
        step = (self.step_up @ self.step_down, self.step_bias)
        return rtrl.Axes(both=-jnp.exp(self.a_log), rows=(self.input, *step), columns=self.b)

    def coefficients(self, parameters: rtrl.Axes, xs: Array) -> tuple[Array, Array]:
        """`(exp(Δ A), Δ u (W_B r)ᵀ)`."""
        weights, step_weights, step_bias = parameters.rows
        signal = jax.nn.silu(xs @ weights.T)
        read = xs if self.reads == "input" else signal
        step = jax.nn.softplus(read @ step_weights.T + step_bias[None])
        a = jnp.exp(step[:, :, None] * parameters.both[None])
        return a, (step * signal)[:, :, None] * (read @ parameters.columns.T)[:, None, :]

    def readout(
        self, state: Float[Array, "hidden states"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`(S' W_C r + D ⊙ u) ⊙ silu(W_z x)`."""
        signal = jax.nn.silu(x @ self.input.T)
        read = x if self.reads == "input" else signal
        y = state @ (read @ self.c.T) + self.d * signal
        return y * jax.nn.silu(x @ self.gate.T)


register("s6", S6)
