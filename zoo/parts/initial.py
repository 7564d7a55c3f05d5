"""Initial values that several cells share, and the checks of their arguments."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from zoo.parts.checks import check_counts


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


def check_sizes(**sizes: int) -> None:
    """Raise `ValueError` for a size that is not a whole number of at least 1."""
    check_counts(1, **sizes)


def real_dtype(module: eqx.Module) -> Any:
    """The real dtype of a module's parameters: inputs are real even where they are not."""
    dtypes = [p.dtype for p in jax.tree.leaves(eqx.filter(module, eqx.is_inexact_array))]
    return jnp.finfo(jnp.result_type(*dtypes)).dtype


def discretize(rule: str, a: Array, step: Array) -> tuple[Array, Array]:
    """A continuous system `dh/dt = a h + b x` in discrete time, `h' = ā h + f b x`.

    **Arguments:**

    - `rule`: `"zoh"` (zero-order hold) or `"bilinear"`.
    - `a`: the system's eigenvalues, real or complex, not 0.
    - `step`: length of a step; broadcasts against `a`.

    **Returns:**

    `(ā, f)`.

    **Raises:**

    `ValueError` for another rule.
    """
    if rule == "zoh":
        # (exp(a Δ) - 1) / a by expm1: small steps would cancel.
        return jnp.exp(a * step), jnp.expm1(a * step) / a
    if rule == "bilinear":
        return (1 + a * step / 2) / (1 - a * step / 2), step / (1 - a * step / 2)
    raise ValueError(f"`discretization` (={rule!r}) must be one of zoh, bilinear.")
