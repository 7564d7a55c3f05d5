"""Returns and advantages: linear recurrences in reverse time."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import scan
from agents.envs.core.statistics import RunningStatistics
from agents.parallel import on_each_device
from zoo.parts.checks import check_shapes, shown

Reward = Float[Array, "time *batch"]
Flag = Bool[Array, "time *batch"]


def discounted_return(
    reward: Reward, done: Flag, last: Float[Array, "*batch"], *, discount: float
) -> Reward:
    """Return `G_t = r_t + γ (1 - done_t) G_{t+1}`, where `last` is the return after the last step.

    **Raises:**

    `TypeError` for a flag that is not boolean; `ValueError` for one without a step, and for shapes
    that differ.
    """
    reward, last = jnp.asarray(reward), jnp.asarray(last)
    (done,) = _flags(reward, done=done)
    check_shapes(reward.shape[1:], "a step of `reward`", last=last)
    return _solve(discount * ~done, reward, last)


def next_values(
    value: Reward, last_value: Float[Array, "*batch"], done: Flag, final_value: Reward
) -> Reward:
    """Return the value of what followed each step: the next observation, or the episode's last.

    **Arguments:**

    - `value`, `last_value`: at each step, and of the observation after the last step.
    - `done`: whether the episode ended with a step.
    - `final_value`: of an episode's final observation, from the memory's state before the reset;
      read only where `done`.
    """
    check_shapes(value.shape, "`value`", done=done, final_value=final_value)
    check_shapes(value.shape[1:], "a step of `value`", last_value=last_value)
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

    `δ_t = r_t + γ (1 - terminated_t) V(next)_t - V_t` and `A_t = δ_t + γ λ (1 - done_t) A_{t+1}`
    with `done = terminated | truncated`; both flags may be true. Only a termination stops
    bootstrapping: at a truncation `next_value` is the value of the final observation; see
    `next_values`. The value target is `A + value`.

    **Raises:**

    `TypeError` for a flag that is not boolean; `ValueError` for one without a step, and for shapes
    that differ.

    Source: Schulman et al. (2016), *High-Dimensional Continuous Control Using Generalized Advantage
    Estimation*.
    """
    terminated, truncated = _flags(reward, terminated=terminated, truncated=truncated)
    check_shapes(jnp.shape(reward), "`reward`", value=value, next_value=next_value)
    delta = reward + discount * jnp.where(terminated, 0, next_value) - value
    carry_on = discount * gae_lambda * ~(terminated | truncated)
    return _solve(carry_on.astype(delta.dtype), delta)


def lambda_return(
    reward: Reward,
    next_value: Reward,
    terminated: Flag,
    truncated: Flag,
    *,
    discount: float,
    trace_decay: float,
) -> Reward:
    """Return the λ-return: the mean of all n-step returns, n by a geometric law.

    `G_t = r_t + γ (1 - terminated_t) ((1 - λ) V(next)_t + λ G_{t+1})`. Where an episode ends, and
    after the last step, V(next) stands for `G_{t+1}`: only a termination stops bootstrapping. For
    `next_value` see `next_values`; with `max_a Q` for V it is Peng's Q(λ).

    **Raises:**

    `TypeError` for a flag that is not boolean; `ValueError` for one without a step, and for shapes
    that differ.

    Source: Sutton and Barto (2018), *Reinforcement Learning: An Introduction*, section 12.1.
    """
    terminated, truncated = _flags(reward, terminated=terminated, truncated=truncated)
    check_shapes(jnp.shape(reward), "`reward`", next_value=next_value)
    following = discount * jnp.where(terminated, 0, next_value)
    goes_on = (~(terminated | truncated)).at[-1].set(False)
    carry_on = discount * trace_decay * goes_on
    base = reward + jnp.where(goes_on, 1 - trace_decay, 1) * following
    return _solve(carry_on.astype(base.dtype), base)


def scaled_reward(
    statistics: RunningStatistics | None,
    reward: Reward,
    begin: Flag,
    before: Float[Array, "*batch"],
    *,
    discount: float,
) -> tuple[Reward, Float[Array, "*batch"], RunningStatistics | None]:
    """Scale a rollout's rewards by the standard deviation of their running return so far.

    By what was known before the rollout, so that one rollout has one scale.

    **Arguments:**

    - `statistics`: of running returns; `None` for rewards as they are.
    - `begin`, `before`: see `running_return`.

    **Returns:**

    `(reward, after, statistics)`: the rewards, the running returns after the last step and the
    statistics with those of this rollout.
    """
    if statistics is None:
        return reward, before, None
    returns = running_return(reward, begin, before, discount=discount)
    return statistics.scale(reward), returns[-1], statistics.update(returns)


def running_return(
    reward: Reward, begin: Flag, before: Float[Array, "*batch"], *, discount: float
) -> Reward:
    """Return `R_t = γ R_{t-1} + r_t` in forward time: the scale of rewards for their normalization.

    `begin` says where episodes begin; `before` is R before the first step.

    **Raises:**

    `TypeError` for a flag that is not boolean; `ValueError` for shapes that differ.
    """
    check_shapes(jnp.shape(reward), "`reward`", begin=begin)
    check_shapes(jnp.shape(reward)[1:], "a step of `reward`", before=before)
    dtype = jnp.result_type(reward, float)  # that of rewards, but for whole numbers
    return _solve(jnp.asarray(discount, dtype), reward, before, begin, reverse=False)


def vtrace(
    ratio: Reward,
    reward: Reward,
    value: Reward,
    next_value: Reward,
    terminated: Flag,
    truncated: Flag,
    *,
    discount: float,
    max_ratio: float = 1.0,
    max_trace: float = 1.0,
) -> tuple[Reward, Reward]:
    """Correct values and advantages for actions that another policy took, by V-trace.

    With `ρ_t = min(max_ratio, ratio_t)`, `c_t = min(max_trace, ratio_t)`, `γ_t = γ (1 -
    terminated_t)` and V' the value of what follows a step:

    `δ_t = ρ_t (r_t + γ_t V'_t - V_t)`, `v_t = V_t + δ_t + γ_t c_t (v_{t+1} - V'_t)` and `A_t = ρ_t
    (r_t + γ_t v_{t+1} - V_t)`.

    Where an episode ends, and after the last step, `v_{t+1}` is `V'_t`: only a termination stops
    bootstrapping. With all ratios 1, targets are returns of as many steps as there are.

    **Arguments:**

    - `ratio`: probability of the action under the policy that learns, over that of the one that
      acted.
    - `next_value`: at a truncation that of the final observation, and not read at a termination;
      see `next_values`.

    **Returns:**

    `(target, advantage)`: v and A.

    **Raises:**

    `TypeError` for a flag that is not boolean; `ValueError` for one without a step, and for shapes
    that differ.

    Source: Espeholt et al. (2018), *IMPALA: Scalable Distributed Deep-RL with Importance Weighted
    Actor-Learner Architectures*.
    """
    terminated, truncated = _flags(reward, terminated=terminated, truncated=truncated)
    check_shapes(jnp.shape(reward), "`reward`", ratio=ratio, value=value, next_value=next_value)
    weight, next_value = jnp.minimum(ratio, max_ratio), jnp.where(terminated, 0, next_value)
    # That of values, but for whole numbers, of which a discount would be 0.
    discounts = (discount * ~terminated).astype(jnp.result_type(value, float))
    delta = weight * (reward + discounts * next_value - value)
    ended = terminated | truncated
    carry_on = jnp.where(ended, 0, discounts * jnp.minimum(ratio, max_trace))
    # What is scanned is v - V, and v_{t+1} - V'_t that of the next step and V_{t+1} - V'_t: zero
    # where both are values of one pass.
    after = jnp.where(ended, next_value, jnp.concatenate([value[1:], next_value[-1:]]))
    correction = _solve(carry_on, delta + carry_on * (after - next_value))
    following = jnp.concatenate([correction[1:], jnp.zeros_like(correction[:1])])
    next_target = after + jnp.where(ended, 0, following)
    return value + correction, weight * (reward + discounts * next_target - value)


def _solve(
    decay: Array, drive: Array, start: Any = None, begin: Any = None, *, reverse: bool = True
) -> Array:
    """`scan.linear` of `[time]`, or of `[time, env]` by each device for what lies on it."""

    def solve(decay, start, begin, drive):
        return scan.linear(decay, drive, start, begin, reverse=reverse)

    if jnp.ndim(drive) < 2:
        return solve(decay, start, begin, drive)
    if decay.ndim == 0:  # of all environments
        return on_each_device(solve, (0, 1, 1), 1)(decay, start, begin, drive)
    run = on_each_device(lambda _, *own: solve(*own), (1, 0, 1, 1), 1)
    return run((), decay, start, begin, drive)


def _flags(reward: Any, **given: Any) -> list[Array]:
    """Flags as arrays; `TypeError` where one is not of booleans, `ValueError` where it has no step
    or not the shape of the rewards.

    Whole numbers are refused although they may be 0 and 1: `~1` is -2, and not false.
    """
    arrays = []
    for name, flag in given.items():
        array = None if flag is None else jnp.asarray(flag)
        if array is None or array.dtype != bool:
            raise TypeError(f"`{name}` (={shown(flag)}) must be a boolean array.")
        scan.check_steps(name, array)
        check_shapes(jnp.shape(reward), "`reward`", **{name: array})
        arrays.append(array)
    return arrays
