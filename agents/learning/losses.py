"""The terms of losses, each a function of plain arrays."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from zoo.parts.checks import check_shapes


def clipped_surrogate(
    ratio: Float[Array, "*batch"],
    advantage: Float[Array, "*batch"],
    *,
    clip: float | Float[Array, ""],
) -> Float[Array, ""]:
    """Return PPO's policy loss: `-mean(min(ρ A, clip(ρ, 1 - ε, 1 + ε) A))`.

    **Arguments:**

    - `ratio`: ρ, new over old probability of the action taken.
    - `advantage`: A.
    - `clip`: ε.

    **Raises:**

    `ValueError` for shapes that differ.

    Source: Schulman et al. (2017), *Proximal Policy Optimization Algorithms*, equation 7.
    """
    check_shapes(jnp.shape(ratio), "`ratio`", advantage=advantage)
    clipped = jnp.clip(ratio, 1 - clip, 1 + clip)
    return -jnp.mean(jnp.minimum(ratio * advantage, clipped * advantage))


def value_loss(
    value: Float[Array, "*batch"],
    old_value: Float[Array, "*batch"],
    target: Float[Array, "*batch"],
    *,
    clip: float | None,
) -> Float[Array, ""]:
    """Return half the mean squared error of the value, with its move since the rollout clipped.

    **Arguments:**

    - `value`, `old_value`: now, and when the rollout was collected.
    - `target`: what it should be.
    - `clip`: largest move that counts, or `None` for no clipping.

    **Raises:**

    `ValueError` for shapes that differ.
    """
    check_shapes(jnp.shape(value), "`value`", old_value=old_value, target=target)
    error = (value - target) ** 2
    if clip is not None:
        moved = old_value + jnp.clip(value - old_value, -clip, clip)
        error = jnp.maximum(error, (moved - target) ** 2)
    return 0.5 * jnp.mean(error)


def standardize(x: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Shift and scale to zero mean and unit variance; every entry counts, there is no padding."""
    return (x - jnp.mean(x)) / (jnp.std(x) + 1e-8)


def masked_mean(x: Float[Array, "*batch"], mask: Bool[Array, "*batch"]) -> Float[Array, ""]:
    """Average what the mask says; 0 where it says nothing.

    What is masked is not read, and no gradient comes from it.

    **Raises:**

    `ValueError` for shapes that differ.
    """
    check_shapes(jnp.shape(x), "`x`", mask=mask)
    return jnp.sum(jnp.where(mask, x, 0)) / jnp.maximum(jnp.sum(mask), 1)
