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
    """Targets and advantages, `[time, env]`, by the sum of the definition, step for step."""
    steps = len(reward)
    done = terminated | truncated
    rho, trace = np.minimum(ratio, max_ratio), np.minimum(ratio, max_trace)
    bootstrap = discount * np.where(terminated, 0, next_value)
    delta = rho * (reward + bootstrap - value)
    target = value.copy()
    for env in np.ndindex(value.shape[1:]):
        for start in range(steps):
            weight = 1.0
            for t in range(start, steps):
                target[(start, *env)] += weight * delta[(t, *env)]
                if done[(t, *env)]:
                    break
                weight *= discount * trace[(t, *env)]
    later = np.concatenate([target[1:], next_value[-1:]])
    goes_on = discount * np.where(terminated, 0, np.where(truncated, next_value, later))
    return target, rho * (reward + goes_on - value)


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
