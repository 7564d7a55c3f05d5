"""Cart-poles and pendulums played by policies that know the state."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from agents import envs
from agents.envs.popgym.control.pendulum import wrap

SEEDS = 200

CARTPOLE = ("position", "velocity", "angle", "angular_velocity")
PENDULUM = ("angle", "angular_velocity")


def fields(env):
    return CARTPOLE if isinstance(env, envs.CartPole) else PENDULUM


def state_vector(env, state):
    return np.stack([np.asarray(getattr(state, f), np.float64) for f in fields(env)], axis=-1)


def balance(state):
    """Push to the side to which the pole leans, falls, and the cart is: it stays up for ever."""
    lean = state.angle + 0.5 * state.angular_velocity + 0.1 * state.position + 0.2 * state.velocity
    return (lean > 0).astype(jnp.int32)


def swing_up(state):
    """Add energy until there is enough to reach the top, then hold the pendulum there."""
    angle, speed = state.angle, state.angular_velocity
    energy = speed**2 / 6 + 5 * (jnp.cos(angle) - 1)  # 0 at rest on top, for a rod of 1 m and 1 kg
    pump = jnp.where((energy < 0) == (speed >= 0), 2.0, -2.0)
    hold = -16 * angle - 4 * speed
    near = (jnp.abs(angle) < 0.4) & (jnp.abs(speed) < 3)
    return jnp.where(near, hold, pump).astype(jnp.float32)[None].clip(-2, 2)


def good_action(env, state):
    return balance(state) if isinstance(env, envs.CartPole) else swing_up(state)


@functools.cache
def play(env, randomness, steps, hanging=False):
    """Reset observations and states, and the record of `steps` steps, `[seed, time]`, in NumPy.

    Actions are random with probability `randomness`, otherwise good. A pendulum that begins
    `hanging` does not reach the top, from where any difference would grow.
    """
    return jax.device_get(_play(env, randomness, steps, hanging))


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _play(env, randomness, steps, hanging):
    params = env.default_params

    def step(state, key):
        key_random, key_action, key_step = jax.random.split(key, 3)
        action = jnp.where(
            jax.random.bernoulli(key_random, randomness),
            env.action_space(params).sample(key_action),
            good_action(env, state),
        )
        _, after, reward, terminated, truncated, info = env.step(key_step, state, action, params)
        seen = info["final_observation"]
        return after, (state, action, after, seen, reward, terminated, truncated)

    def episode(key):
        key_reset, key_steps = jax.random.split(key)
        first = env.reset(key_reset, params)
        start = first[1]
        if hanging:
            start = start.replace(angle=wrap(np.pi + start.angle / 10))
        return first, jax.lax.scan(step, start, jax.random.split(key_steps, steps))[1]

    return jax.vmap(episode)(jax.random.split(jax.random.key(11), SEEDS))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _transitions(env, n):
    params = env.default_params
    keys = jax.random.split(jax.random.key(6), (2, n))
    first, state = jax.vmap(env.reset, (0, None))(keys[0], params)
    space = env.action_space(params)
    action = jnp.ones(space.shape, space.dtype)
    step = jax.vmap(env.step_env, (0, 0, None, None))
    seen, after, *_ = step(keys[1], state, action, params)
    return (state, first), (after, seen)


@functools.cache
def transitions(env, n):
    """`(state, observation)` of `n` resets, and of one step after each."""
    return jax.device_get(_transitions(env, n))
