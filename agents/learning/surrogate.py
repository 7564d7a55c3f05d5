"""PPO's sample of a rollout, and its loss."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from agents.learning.losses import clipped_surrogate, standardize, value_loss
from agents.learning.returns import gae, next_values
from agents.networks import Distribution


class Sample(eqx.Module):
    """What PPO's loss needs of each step: leading axes `[time, env]` or `[time, segment]`.

    **Attributes:**

    - `inputs`, `action`: what was seen and done.
    - `log_prob`, `value`: when the rollout was collected; the value's clipping is anchored there.
    - `advantage`, `target`: what the policy and the value learn from.
    """

    inputs: Any
    action: Array
    log_prob: Float[Array, "..."]
    value: Float[Array, "..."]
    advantage: Float[Array, "..."]
    target: Float[Array, "..."]


def advantages(
    rollout: Any,
    reward: Float[Array, "time env"],
    value: Float[Array, "time env"],
    last_value: Float[Array, " env"],
    *,
    discount: float,
    gae_lambda: float,
) -> Float[Array, "time env"]:
    """Return the advantages along a rollout.

    **Arguments:**

    - `rollout`: an `agents.acting.Transition` whose `last` are values of final observations.
    - `reward`: what to learn from; the rollout's own, or scaled.
    - `value`, `last_value`: along the rollout, and of what comes after it.
    """
    return gae(
        reward,
        value,
        next_values(value, last_value, rollout.done, rollout.last),
        rollout.terminated,
        rollout.truncated,
        discount=discount,
        gae_lambda=gae_lambda,
    )


def surrogate_loss(
    policy: Distribution,
    value: Float[Array, "..."],
    sample: Sample,
    *,
    clip: Any,
    value_clip: float | None,
    value_coefficient: float,
    entropy_coefficient: Any,
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """Return PPO's loss of present policies and values, with advantages standardized.

    **Returns:**

    `(loss, metrics)`. How far the policy has moved from the one that collected the rollout is
    estimated by `kl_k1 = mean(-log ρ)`, `kl_k2 = mean(½ (log ρ)²)` and, of the least variance,
    `approximate_kl = mean(ρ - 1 - log ρ)`, known as k3.
    """
    log_ratio = policy.log_prob(sample.action) - sample.log_prob
    ratio = jnp.exp(log_ratio)
    policy_term = clipped_surrogate(ratio, standardize(sample.advantage), clip=clip)
    value_term = value_loss(value, sample.value, sample.target, clip=value_clip)
    entropy = jnp.mean(policy.entropy())
    loss = policy_term + value_coefficient * value_term - entropy_coefficient * entropy
    return loss, {
        "loss": loss,
        "policy_loss": policy_term,
        "value_loss": value_term,
        "entropy": entropy,
        "approximate_kl": jnp.mean(ratio - 1 - log_ratio),
        "kl_k1": -jnp.mean(log_ratio),
        "kl_k2": 0.5 * jnp.mean(log_ratio**2),
        "clip_fraction": jnp.mean((jnp.abs(ratio - 1) > clip).astype(ratio.dtype)),
        "ratio_error": jnp.max(jnp.abs(ratio - 1)),
    }
