"""The terms of the policy-gradient losses, each a function of plain arrays."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from agents.distributions import Distribution
from agents.networks import Inputs
from agents.returns import gae, next_values
from agents.rollout import Step


def clipped_surrogate(
    ratio: Float[Array, "*batch"], advantage: Float[Array, "*batch"], *, clip: float
) -> Float[Array, ""]:
    """PPO's policy loss: `-mean(min(ρ A, clip(ρ, 1 - ε, 1 + ε) A))`.

    **Arguments:**

    - `ratio`: ρ, new over old probability of the action taken.
    - `advantage`: A.
    - `clip`: ε.

    **Returns:**

    A scalar to minimize.

    Source: Schulman et al. (2017), *Proximal Policy Optimization Algorithms*, equation 7.
    """
    clipped = jnp.clip(ratio, 1 - clip, 1 + clip)
    return -jnp.mean(jnp.minimum(ratio * advantage, clipped * advantage))


def value_loss(
    value: Float[Array, "*batch"],
    old_value: Float[Array, "*batch"],
    target: Float[Array, "*batch"],
    *,
    clip: float | None,
) -> Float[Array, ""]:
    """Half the mean squared error of the value, with its move since the rollout clipped.

    **Arguments:**

    - `value`: the value now.
    - `old_value`: the value when the rollout was collected.
    - `target`: what it should be.
    - `clip`: largest move that counts, or `None` for no clipping.

    **Returns:**

    A scalar to minimize.
    """
    error = (value - target) ** 2
    if clip is not None:
        moved = old_value + jnp.clip(value - old_value, -clip, clip)
        error = jnp.maximum(error, (moved - target) ** 2)
    return 0.5 * jnp.mean(error)


def standardize(x: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Zero mean and unit variance over all entries.

    **Arguments:**

    - `x`: every entry counts; there must be no padding among them.

    **Returns:**

    An array of the same shape.
    """
    return (x - jnp.mean(x)) / (jnp.std(x) + 1e-8)


class Sample(eqx.Module):
    """What the loss needs of each step: leading axes `[time, env]` or `[time, segment]`."""

    inputs: Inputs
    action: Array
    log_prob: Float[Array, "..."]
    value: Float[Array, "..."]
    advantage: Float[Array, "..."]
    target: Float[Array, "..."]


def sample_of(
    rollout: Step,
    reward: Float[Array, "time env"],
    last_value: Float[Array, " env"],
    *,
    discount: float,
    gae_lambda: float,
) -> Sample:
    """A rollout with advantages and value targets.

    **Arguments:**

    - `rollout`: leading axes `[time, env]`.
    - `reward`: the rewards to learn from, scaled or not.
    - `last_value`: the value of the observation after the rollout.
    - `discount`, `gae_lambda`: γ and λ of `agents.returns.gae`.

    **Returns:**

    `Sample`, leading axes `[time, env]`.
    """
    done = rollout.terminated | rollout.truncated
    advantage = gae(
        reward,
        rollout.value,
        next_values(rollout.value, last_value, done, rollout.final_value),
        rollout.terminated,
        rollout.truncated,
        discount=discount,
        gae_lambda=gae_lambda,
    )
    return Sample(
        inputs=rollout.inputs,
        action=rollout.action,
        log_prob=rollout.log_prob,
        value=rollout.value,
        advantage=advantage,
        target=advantage + rollout.value,
    )


def ppo_loss(
    policy: Distribution,
    value: Float[Array, "*batch"],
    sample: Sample,
    *,
    clip: float,
    value_clip: float | None,
    value_coefficient: float,
    entropy_coefficient: float,
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """PPO's loss of a minibatch: policy, value and entropy terms.

    **Arguments:**

    - `policy`, `value`: what the network answers now.
    - `sample`: what it answered and what came of it.
    - `clip`, `value_clip`: see `clipped_surrogate` and `value_loss`.
    - `value_coefficient`, `entropy_coefficient`: weights of those terms.

    **Returns:**

    `(loss, metrics)`; `ratio_error` is the largest |ρ - 1|.
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
        "clip_fraction": jnp.mean((jnp.abs(ratio - 1) > clip).astype(ratio.dtype)),
        "ratio_error": jnp.max(jnp.abs(ratio - 1)),
    }
