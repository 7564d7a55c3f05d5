"""Many first episodes of an environment under a policy that is a function of what was seen."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

EPISODES = 4096


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def play(env, policy, steps):
    """Observations, rewards, flags and states before each step, `[episode, time]`.

    `policy` gets the observations so far, -1 for those to come, the time and a key. After the first
    episode the rewards are 0.
    """
    params = env.default_params

    def step(carry, key):
        state, seen, time, over = carry
        key_action, key_step = jax.random.split(key)
        action = policy(seen, time, key_action)
        _, after, reward, terminated, truncated, info = env.step(key_step, state, action, params)
        reward = jnp.where(over, 0, reward)
        seen_next = seen.at[time + 1].set(info["final_observation"])
        done = terminated | truncated
        return (after, seen_next, time + 1, over | done), (reward, terminated, truncated, state)

    def episode(key):
        key_reset, key_steps = jax.random.split(key)
        first, state = env.reset(key_reset, params)
        seen = jnp.full((steps + 1,), -1, jnp.int32).at[0].set(first)
        carry = (state, seen, jnp.int32(0), jnp.bool_(False))
        carry, record = jax.lax.scan(step, carry, jax.random.split(key_steps, steps))
        return carry[1], *record

    return jax.vmap(episode)(jax.random.split(jax.random.key(8), EPISODES))


def returns(record):
    return np.asarray(record[1], np.float64).sum(axis=1)


def uniformly(actions):
    return lambda seen, time, key: jax.random.randint(key, (), 0, actions, jnp.int32)


def constantly(action):
    return lambda seen, time, key: jnp.int32(action)
