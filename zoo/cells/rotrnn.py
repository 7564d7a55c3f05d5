"""Rotational recurrent network."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

import scan
from zoo.kinds import AbstractTimeInvariantCell
from zoo.kinds.time_invariant import drive
from zoo.memory import AbstractStepper, Begin, State
from zoo.parts import Linear, check_sizes, to_complex, widened
from zoo.registry import register


class RotRNN(AbstractTimeInvariantCell):
    r"""Rotations with one decay, in a learned orthogonal basis.

    With P = exp(M - Mᵀ) orthogonal, Θ a block-diagonal matrix of rotations by θ, and γ in (0, 1),

        h' = γ P Θ Pᵀ h + B̂ x        y = C h + D x

    is scanned in the basis of P, where two neighboring coordinates are one complex number:
    `s' = γ e^{iθ} s + (Pᵀ B̂ x)`. `B̂ = √((1 - γ²) / ‖B‖²) B` keeps the state's size constant
    for inputs of constant size, whatever γ. `γ = exp(-exp(ν))`.

    Source: *RotRNN: Modelling Long Sequences with Rotations*, Biegun et al. (2024), section 3, with
    one head; stack cells for more.
    """

    basis: Float[Array, "size size"]
    theta_log: Float[Array, " hidden"]
    nu_log: Float[Array, ""]
    b: Float[Array, "size inputs"]
    c: Float[Array, "outputs size"]
    d: Linear
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        outputs: int | None = None,
        gamma: float = 0.99,
        max_phase: float = math.pi / 10,
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of rotations; the state has twice as many real numbers.
        - `outputs`: width of `y`; `hidden` by default.
        - `gamma`: initial decay per step, between 0 and 1.
        - `max_phase`: θ starts uniform in (0, max_phase), in radians per step.
        """
        outputs = hidden if outputs is None else outputs
        check_sizes(inputs=inputs, hidden=hidden, outputs=outputs)
        if not 0 < gamma < 1:
            raise ValueError(f"`gamma` (={gamma}) must be between 0 and 1.")
        if not 0 < max_phase <= 2 * math.pi:
            raise ValueError(f"`max_phase` (={max_phase}) must be in (0, 2π].")
        keys = jax.random.split(key, 5)
        size = 2 * hidden
        self.basis = jax.random.normal(keys[0], (size, size)) / math.sqrt(size)
        self.theta_log = jnp.log(
            jax.random.uniform(keys[1], (hidden,), minval=1e-6, maxval=1.0) * max_phase
        )
        self.nu_log = jnp.asarray(np.log(-np.log(gamma)), self.basis.dtype)
        self.b = jax.random.normal(keys[2], (size, inputs)) / math.sqrt(inputs)
        self.c = jax.random.normal(keys[3], (outputs, size)) / math.sqrt(size)
        self.d = Linear(inputs, outputs, False, key=keys[4])
        self.inputs, self.hidden = inputs, hidden

    @property
    def outputs(self) -> int:
        """As given; `hidden` by default."""
        return self.c.shape[0]

    def matrices(self) -> tuple[Complex[Array, " hidden"], Complex[Array, "hidden inputs"]]:
        """`γ e^{iθ}` and `Pᵀ B̂`, two rows as one complex row."""
        gamma, theta = jnp.exp(-jnp.exp(self.nu_log)), jnp.exp(self.theta_log)
        scale = jnp.sqrt((1 - gamma**2) / jnp.sum(self.b**2))
        b = scale * (self._orthogonal().T @ self.b)
        return (
            to_complex(gamma * jnp.cos(theta), gamma * jnp.sin(theta)),
            to_complex(b[0::2], b[1::2]),
        )

    def readout(
        self, state: Complex[Array, " hidden"], x: Float[Array, " inputs"]
    ) -> Float[Array, " outputs"]:
        """`C P s + D x`."""
        return _coordinates(state) @ self._orthogonal().T @ self.c.T + self.d(x)

    def stepper(self) -> AbstractStepper:
        return _RotRNNStepper(self, *self.matrices(), self.c @ self._orthogonal())

    def _orthogonal(self) -> Float[Array, "size size"]:
        # Solving, which the exponential does, is not there in half precision.
        skew = widened(self.basis - self.basis.T)
        return jax.scipy.linalg.expm(skew)


class _RotRNNStepper(AbstractStepper):
    """Steps with the matrices of one exponential, which takes longer than thousands of steps."""

    memory: RotRNN
    a: Complex[Array, " hidden"]
    m: Complex[Array, "hidden inputs"]
    output: Float[Array, "outputs size"]

    def step(
        self, cache: State, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[State, Float[Array, " outputs"]]:
        memory = self.memory
        x = memory.check_input(x)
        state = scan.reset(begin, jnp.zeros_like(cache), cache)
        state = self.a * state + drive(self.m, x[None])[0]
        return state, _coordinates(state) @ self.output.T + memory.d(x)


def _coordinates(state):
    """The state as real numbers: two for each rotation, side by side."""
    return jnp.stack([state.real, state.imag], -1).ravel()


register("rotrnn", RotRNN)
