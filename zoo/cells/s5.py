"""Simplified structured state space layer."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from zoo.kinds import AbstractTimeInvariantCell
from zoo.parts import Linear, check_sizes, discretize, time_constants, to_complex
from zoo.registry import register


class S5(AbstractTimeInvariantCell):
    r"""Simplified structured state space layer: one diagonal system with all inputs and outputs.

    The continuous system `dh/dt = Λ h + B x` is discretized with a step Δ of its own per unit:

        h' = Λ̄ h + B̄ x
        u  = gelu(2 Re(C h) + D ⊙ x)
        y  = (W1 u + b1) ⊙ σ(W2 u + b2)

    Zero-order hold: `Λ̄ = exp(Λ Δ)`, `B̄ = Λ⁻¹ (Λ̄ - 1) B`. Bilinear: `Λ̄ = (1 + ΛΔ/2) / (1 - ΛΔ/2)`,
    `B̄ = Δ / (1 - ΛΔ/2) B`. Λ starts as the upper half of the eigenvalues of the HiPPO-N matrix of
    twice as many states (the lower half are their conjugates, hence the 2), with B and C in its
    eigenvectors' coordinates. Re Λ is learned as `-exp(·)`, so the system cannot become unstable.
    The skip `D ⊙ x` needs outputs as wide as inputs; where they are not, it is left out.

    Source: *Simplified State Space Layers for Sequence Modeling*, Smith et al. (2022); the readout
    is that of *Recurrent Reinforcement Learning with Memoroids*, Morad et al. (2024).
    """

    decay_log: Float[Array, " hidden"]
    frequency: Float[Array, " hidden"]
    step_log: Float[Array, " hidden"]
    b_real: Float[Array, "hidden inputs"]
    b_imag: Float[Array, "hidden inputs"]
    c_real: Float[Array, "outputs hidden"]
    c_imag: Float[Array, "outputs hidden"]
    d: Float[Array, " outputs"] | None
    value: Linear
    gate: Linear
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    discretization: str = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        outputs: int | None = None,
        discretization: str = "zoh",
        step_min: float = 0.001,
        step_max: float = 0.1,
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of complex units.
        - `outputs`: width of `y`; `hidden` by default.
        - `discretization`: `"zoh"` or `"bilinear"`.
        - `step_min`, `step_max`: log Δ starts uniform between their logarithms.
        """
        outputs = hidden if outputs is None else outputs
        check_sizes(inputs=inputs, hidden=hidden, outputs=outputs)
        discretize(discretization, jnp.ones(()), jnp.ones(()))
        keys = jax.random.split(key, 6)
        eigenvalues, vectors = _hippo(2 * hidden)
        self.decay_log = jnp.log(-jnp.asarray(np.real(eigenvalues)))
        self.frequency = jnp.asarray(np.imag(eigenvalues))
        self.step_log = time_constants(keys[0], hidden, step_min=step_min, step_max=step_max)
        b = jax.random.normal(keys[1], (2 * hidden, inputs)) / math.sqrt(inputs)
        vectors = jnp.asarray(vectors)
        b = vectors.conj().T @ b.astype(vectors.dtype)
        c = jax.random.normal(keys[2], (outputs, 2 * hidden)) / math.sqrt(2 * hidden)
        c = c.astype(vectors.dtype) @ vectors
        self.b_real, self.b_imag = b.real, b.imag
        self.c_real, self.c_imag = c.real, c.imag
        self.d = jax.random.normal(keys[3], (outputs,)) if outputs == inputs else None
        self.value = Linear(outputs, outputs, key=keys[4])
        self.gate = Linear(outputs, outputs, key=keys[5])
        self.inputs, self.hidden, self.discretization = inputs, hidden, discretization

    @property
    def outputs(self) -> int:
        """As given; `hidden` by default."""
        return self.c_real.shape[0]

    def matrices(self) -> tuple[Complex[Array, " hidden"], Complex[Array, "hidden inputs"]]:
        """`Λ̄` and `B̄`."""
        eigenvalues = to_complex(-jnp.exp(self.decay_log), self.frequency)
        a, factor = discretize(self.discretization, eigenvalues, jnp.exp(self.step_log))
        return a, factor[:, None] * to_complex(self.b_real, self.b_imag)

    def readout(
        self, state: Complex[Array, " hidden"], x: Float[Array, " inputs"]
    ) -> Float[Array, " outputs"]:
        """`(W1 u + b1) ⊙ σ(W2 u + b2)`."""
        u = 2 * (state.real @ self.c_real.T - state.imag @ self.c_imag.T)
        u = jax.nn.gelu(u if self.d is None else u + self.d * x)
        return self.value(u) * jax.nn.sigmoid(self.gate(u))


def _hippo(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues with positive imaginary part of the HiPPO-N matrix, and their eigenvectors."""
    p = np.sqrt(np.arange(size) + 0.5)
    skew = np.tril(-np.outer(p, p), -1)
    frequencies, vectors = np.linalg.eigh(-1j * (skew - skew.T))
    upper = slice(size // 2, None)  # eigh sorts them
    return -0.5 + 1j * frequencies[upper], vectors[:, upper]


register("s5", S5)
