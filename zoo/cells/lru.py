"""Linear Recurrent Unit."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float

from zoo.kinds import AbstractTimeInvariantCell
from zoo.parts import check_sizes, ring, to_complex
from zoo.registry import register


class LRU(AbstractTimeInvariantCell):
    r"""Linear Recurrent Unit.

    With `λ = exp(-exp(ν) + i exp(ϑ))`:

        h' = λ h + exp(γ_log) ⊙ (B x)
        y  = Re(C h) + D ⊙ x

    γ is a parameter of its own, started at √(1 - |λ|²). The skip `D ⊙ x` needs outputs as wide as
    inputs; where they are not, it is left out. B and C are stored as pairs of real matrices, so
    that any optimizer's real gradients are right.

    Source: *Resurrecting Recurrent Neural Networks for Long Sequences*, Orvieto et al. (2023);
    online: Zucchet et al. (2023).
    """

    nu_log: Float[Array, " hidden"]
    theta_log: Float[Array, " hidden"]
    gamma_log: Float[Array, " hidden"]
    b_real: Float[Array, "hidden inputs"]
    b_imag: Float[Array, "hidden inputs"]
    c_real: Float[Array, "outputs hidden"]
    c_imag: Float[Array, "outputs hidden"]
    d: Float[Array, " outputs"] | None
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        outputs: int | None = None,
        r_min: float = 0.0,
        r_max: float = 1.0,
        max_phase: float = 6.283185307179586,
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of complex units.
        - `outputs`: width of `y`; `hidden` by default.
        - `r_min`, `r_max`: the initial `|λ|²` is uniform in [r_min², r_max²].
        - `max_phase`: the initial phase is uniform in (0, max_phase), in radians per step.
        """
        outputs = hidden if outputs is None else outputs
        check_sizes(inputs=inputs, hidden=hidden, outputs=outputs)
        ring_key, *keys, d_key = jax.random.split(key, 6)
        self.nu_log, self.theta_log = ring(ring_key, hidden, r_min, r_max, max_phase)
        self.gamma_log = 0.5 * jnp.log(-jnp.expm1(-2 * jnp.exp(self.nu_log)))
        b_shape, c_shape = (hidden, inputs), (outputs, hidden)
        self.b_real = jax.random.normal(keys[0], b_shape) / math.sqrt(2 * inputs)
        self.b_imag = jax.random.normal(keys[1], b_shape) / math.sqrt(2 * inputs)
        self.c_real = jax.random.normal(keys[2], c_shape) / math.sqrt(hidden)
        self.c_imag = jax.random.normal(keys[3], c_shape) / math.sqrt(hidden)
        self.d = jax.random.normal(d_key, (outputs,)) if outputs == inputs else None
        self.inputs, self.hidden = inputs, hidden

    @property
    def outputs(self) -> int:
        """As given; `hidden` by default."""
        return self.c_real.shape[0]

    def matrices(self) -> tuple[Complex[Array, " hidden"], Complex[Array, "hidden inputs"]]:
        """`λ` and `exp(γ_log) ⊙ B`."""
        r, theta = jnp.exp(-jnp.exp(self.nu_log)), jnp.exp(self.theta_log)
        gamma = jnp.exp(self.gamma_log)[:, None]
        return (
            to_complex(r * jnp.cos(theta), r * jnp.sin(theta)),
            to_complex(gamma * self.b_real, gamma * self.b_imag),
        )

    def readout(
        self, state: Complex[Array, " hidden"], x: Float[Array, " inputs"]
    ) -> Float[Array, " outputs"]:
        """`Re(C h) + D ⊙ x`."""
        y = state.real @ self.c_real.T - state.imag @ self.c_imag.T
        return y if self.d is None else y + self.d * x


register("lru", LRU)
