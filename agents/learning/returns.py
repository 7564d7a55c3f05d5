"""Returns and advantages: linear recurrences in reverse time."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import scan

Reward = Float[Array, "time *batch"]
Flag = Bool[Array, "time *batch"]


def discounted_return(
    reward: Reward, done: Flag, last: Float[Array, "*batch"], *, discount: float
) -> Reward:
    """Return `G_t = r_t + γ (1 - done_t) G_{t+1}`.

    **Arguments:**

    - `reward`: shape `[time, *batch]`.
    - `done`: whether the episode ended with step t.
    - `last`: the return after the last step.
    - `discount`: γ.

    **Returns:**

    `G`, shape `[time, *batch]`.
    """
    return scan.linear(discount * ~done, reward, last, reverse=True)


def next_values(
    value: Reward, last_value: Float[Array, "*batch"], done: Flag, final_value: Reward
) -> Reward:
    """Return the value of what followed each step: the next observation, or the episode's last.

    **Arguments:**

    - `value`: the value at each step.
    - `last_value`: the value of the observation after the last step.
    - `done`: whether the episode ended with step t.
    - `final_value`: the value of the final observation of an episode, from the memory's state
      before the reset; read only where `done`.

    **Returns:**

    Shape `[time, *batch]`.
    """
    following = jnp.concatenate([value[1:], last_value[None]])
    return jnp.where(done, final_value, following)


def gae(
    reward: Reward,
    value: Reward,
    next_value: Reward,
    terminated: Flag,
    truncated: Flag,
    *,
    discount: float,
    gae_lambda: float,
) -> Reward:
    """Estimate advantages by generalized advantage estimation.

    `δ_t = r_t + γ (1 - terminated_t) V(next)_t - V_t` and
    `A_t = δ_t + γ λ (1 - done_t) A_{t+1}` with `done = terminated | truncated`. Only a termination
    stops bootstrapping: at a truncation `next_value` is the value of the final observation.

    **Arguments:**

    - `reward`, `value`, `next_value`: shape `[time, *batch]`; see `next_values`.
    - `terminated`, `truncated`: whether the episode ended so with step t. Both may be true.
    - `discount`: γ.
    - `gae_lambda`: λ.

    **Returns:**

    `A`, shape `[time, *batch]`. The value target is `A + value`.

    Source: Schulman et al. (2016), *High-Dimensional Continuous Control Using Generalized
    Advantage Estimation*.
    """
    delta = reward + discount * jnp.where(terminated, 0, next_value) - value
    carry_on = discount * gae_lambda * ~(terminated | truncated)
    return scan.linear(carry_on.astype(delta.dtype), delta, reverse=True)


def running_return(
    reward: Reward, begin: Flag, before: Float[Array, "*batch"], *, discount: float
) -> Reward:
    """Return `R_t = γ R_{t-1} + r_t` in forward time: the scale of rewards for their normalization.

    **Arguments:**

    - `reward`: shape `[time, *batch]`.
    - `begin`: whether step t is the first of an episode.
    - `before`: R before the first step.
    - `discount`: γ.

    **Returns:**

    R, shape `[time, *batch]`.
    """
    return scan.linear(jnp.asarray(discount, reward.dtype), reward, before, begin)
