"""Diagonal structured state space layer."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float

import rtrl
from zoo.kinds import AbstractTwoAxisCell
from zoo.parts import Linear, check_sizes, discretize, time_constants, to_complex
from zoo.registry import register


class S4D(AbstractTwoAxisCell):
    r"""Diagonal structured state space layer: a small diagonal system per feature.

    Each of the features `u = W x` drives a system of its own with complex `states`, discretized by
    zero-order hold with the feature's step Δ:

        s'_fn = exp(A_fn Δ_f) s_fn + (exp(A_fn Δ_f) - 1) / A_fn u_f
        v_f   = 2 Re(Σ_n C_fn s_fn) + D_f u_f
        y     = (W1 gelu(v) + b1) ⊙ σ(W2 gelu(v) + b2)

    Re A is learned as `-exp(·)`. Im A starts at `π n` (`"lin"`) or at `(N/π) (N/(2n + 1) - 1)`
    (`"inv"`) with N twice the number of states, which come in conjugate pairs; Re A at -1/2. W is a
    part of the recurrence, so its sensitivity has an axis for the states of a feature.

    Source: *On the Parameterization and Initialization of Diagonal State Space Models*, Gu et al.
    (2022).
    """

    project: Float[Array, "hidden inputs"]
    decay_log: Float[Array, "hidden states"]
    frequency: Float[Array, "hidden states"]
    step_log: Float[Array, " hidden"]
    c_real: Float[Array, "hidden states"]
    c_imag: Float[Array, "hidden states"]
    d: Float[Array, " hidden"]
    value: Linear
    gate: Linear
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        states: int = 16,
        init: str = "lin",
        step_min: float = 0.001,
        step_max: float = 0.1,
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of features, and width of `y`.
        - `states`: complex states per feature.
        - `init`: `"lin"` or `"inv"`.
        - `step_min`, `step_max`: log Δ starts uniform between their logarithms.
        """
        check_sizes(inputs=inputs, hidden=hidden, states=states)
        n = jnp.arange(states, dtype=float)
        frequencies = {
            "lin": math.pi * n,
            "inv": 2 * states / math.pi * (2 * states / (2 * n + 1) - 1),
        }
        if init not in frequencies:
            raise ValueError(f"`init` (={init!r}) must be one of {', '.join(frequencies)}.")
        keys = jax.random.split(key, 7)
        self.project = jax.random.normal(keys[0], (hidden, inputs)) / math.sqrt(inputs)
        self.decay_log = jnp.full((hidden, states), math.log(0.5), float)
        self.frequency = jnp.tile(jnp.asarray(frequencies[init], float), (hidden, 1))
        self.step_log = time_constants(keys[1], hidden, step_min=step_min, step_max=step_max)
        self.c_real, self.c_imag = (
            jax.random.normal(k, (hidden, states)) * math.sqrt(0.5) for k in keys[2:4]
        )
        self.d = jax.random.normal(keys[4], (hidden,))
        self.value = Linear(hidden, hidden, key=keys[5])
        self.gate = Linear(hidden, hidden, key=keys[6])
        self.inputs, self.hidden = inputs, hidden

    def recurrence_parameters(self) -> rtrl.Axes:
        """`Ā` and `B̄` for every state, W for every feature."""
        eigenvalues = to_complex(-jnp.exp(self.decay_log), self.frequency)
        both = discretize("zoh", eigenvalues, jnp.exp(self.step_log)[:, None])
        return rtrl.Axes(both=both, rows=self.project)

    def coefficients(self, parameters: rtrl.Axes, xs: Array) -> tuple[Array, Array]:
        """`(Ā, B̄ ⊙ W x)`."""
        a, b = parameters.both
        return a, b[None] * (xs @ parameters.rows.T)[:, :, None].astype(b.dtype)

    def readout(
        self, state: Complex[Array, "hidden states"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`(W1 gelu(v) + b1) ⊙ σ(W2 gelu(v) + b2)`."""
        v = 2 * jnp.sum(self.c_real * state.real - self.c_imag * state.imag, -1)
        v = jax.nn.gelu(v + self.d * (x @ self.project.T))
        return self.value(v) * jax.nn.sigmoid(self.gate(v))


register("s4d", S4D)
