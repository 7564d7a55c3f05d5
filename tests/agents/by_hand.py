"""What PPO makes of the rollouts of `Tape`, in plain loops over what is known beforehand."""

import jax
import jax.numpy as jnp
import numpy as np

from agents.networks import Inputs
from tests.agents.tasks import Tape


def gae_by_hand(reward, value, next_value, terminated, truncated, discount, gae_lambda):
    """Advantages, `[time, env]`."""
    advantage = np.zeros_like(reward)
    following = np.zeros_like(reward[0])
    for t in reversed(range(len(reward))):
        delta = reward[t] + discount * (1 - terminated[t]) * next_value[t] - value[t]
        done = np.maximum(terminated[t], truncated[t])
        following = delta + discount * gae_lambda * (1 - done) * following
        advantage[t] = following
    return advantage


def vtrace_by_hand(
    ratio,
    reward,
    value,
    next_value,
    terminated,
    truncated,
    discount,
    max_ratio=1.0,
    max_trace=1.0,
):
    """Targets and advantages, `[time, env]`, by their recurrence; `next_value` may be any."""
    rho, trace = np.minimum(ratio, max_ratio), np.minimum(ratio, max_trace)
    target, advantage = np.zeros_like(value), np.zeros_like(value)
    for t in reversed(range(len(reward))):
        gamma = discount * (1 - terminated[t])
        ends = terminated[t] | truncated[t] | (t == len(reward) - 1)
        following = np.where(ends, next_value[t], target[min(t + 1, len(reward) - 1)])
        delta = rho[t] * (reward[t] + gamma * next_value[t] - value[t])
        target[t] = value[t] + delta + gamma * trace[t] * (following - next_value[t])
        advantage[t] = rho[t] * (reward[t] + gamma * following - value[t])
    return target, advantage


def episodes(env, steps):
    """What happens in `steps` steps from the beginning of an episode.

    Of each step: the time in its episode before it, the reward, whether it terminates and whether
    it truncates.
    """
    span = min(env.length, env.limit)
    time = np.arange(steps) % span
    reward = np.array([Tape.reward(jnp.int32(t + 1)) for t in time], float)
    ends = time == span - 1
    return time, reward, ends & (env.length <= span), ends & (env.limit <= span)


def values(network, env, time, seen, clip=np.inf):
    """The values along these steps, of what follows each, and of what would after the last.

    **Arguments:**

    - `time`: see `episodes`; the first is 0.
    - `seen`: an observation as the network reads it.
    - `clip`: what its rewards are clipped to.
    """
    rewards = [
        0.0,
        *(min(clip, float(Tape.reward(jnp.int32(t + 1)))) for t in range(max(time) + 1)),
    ]

    def inputs(t, begin):
        # The action is always 0, and reading it is zero where an episode begins.
        observation = seen(Tape.observation(jnp.int32(t)))
        return Inputs(observation, jnp.int32(0), jnp.float32(rewards[t]), jnp.bool_(begin))

    step = jax.jit(lambda state, inputs: network.step(state, inputs))
    # One episode, its final observation included: all are the same.
    state, along = network.init_state(), []
    for t in range(max(time) + 2):
        state, (_, value) = step(state, inputs(t, t == 0))
        along.append(float(value))
    return np.array(along)[time], np.array(along)[time + 1]
