"""Continuous systems in discrete time."""

import jax.numpy as jnp
from jaxtyping import Array

from scan.precision import promoted


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
    dtype = promoted(a, step)
    a, step = a.astype(dtype), step.astype(dtype)
    if rule == "zoh":
        # (exp(a Δ) - 1) / a by expm1: small steps would cancel.
        return jnp.exp(a * step), jnp.expm1(a * step) / a
    if rule == "bilinear":
        return (1 + a * step / 2) / (1 - a * step / 2), step / (1 - a * step / 2)
    raise ValueError(f"`discretization` (={rule!r}) must be one of zoh, bilinear.")
