"""Initial values that several cells share."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def linear_weights(key: Array, shape: tuple[int, ...], fan_in: int) -> Float[Array, "..."]:
    """The usual initialization of a linear layer: uniform in ±1/√fan_in."""
    bound = 1 / math.sqrt(fan_in)
    return jax.random.uniform(key, shape, minval=-bound, maxval=bound)


def ring(
    key: Array, hidden: int, r_min: float, r_max: float, max_phase: float
) -> tuple[Float[Array, " hidden"], Float[Array, " hidden"]]:
    """Eigenvalues uniform on a ring of the complex plane, as the logarithms that cells learn.

    **Returns:**

    `(ν, ϑ)` with `|λ| = exp(-exp(ν))`, |λ|² uniform in [r_min², r_max²], and `arg λ = exp(ϑ)`
    uniform in (0, max_phase). Source: Orvieto et al. (2023), Lemma 3.2.
    """
    if not 0 <= r_min < r_max <= 1:
        raise ValueError(
            f"`r_min` (={r_min}) and `r_max` (={r_max}) must obey 0 <= r_min < r_max <= 1."
        )
    if not 0 < max_phase <= 2 * math.pi + 1e-9:
        raise ValueError(f"`max_phase` (={max_phase}) must be in (0, 2π].")
    modulus_key, phase_key = jax.random.split(key)
    # Away from the ends: |λ| = 0 and |λ| = 1 are at infinity in ν, as is phase 0 in ϑ.
    u = jax.random.uniform(modulus_key, (hidden,), minval=1e-6, maxval=1 - 1e-6)
    phase = jax.random.uniform(phase_key, (hidden,), minval=1e-6, maxval=1.0) * max_phase
    nu = jnp.log(-0.5 * jnp.log(u * (r_max**2 - r_min**2) + r_min**2))
    return nu, jnp.log(phase)
