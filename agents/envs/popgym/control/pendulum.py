"""POPGym's pendulums: swing one up and hold it without seeing how fast it turns."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float, Float32, PRNGKeyArray

from zoo.annotations import Count, NonNegative, checked

from ...core.base import BaseEnvironment
from ...core.hidden import Hides

GRAVITY = 10.0
SECONDS_PER_STEP = 0.05
MAX_TORQUE = 2.0
MAX_SPEED = 8.0
WORST_COST = 16.2736044
"""Of a pendulum that hangs down, turns at full speed and is pushed at full torque."""

Observation = Float32[Array, "2"]


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of a pendulum; batched states have leading axes.

    `time`: steps taken, int32. `angle` in radians (0 is upright), from -π to π after a step;
    `angular_velocity` in radians per second. Both are float32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    angle: Any
    angular_velocity: Any


def wrap(angle: Float32[Array, ""]) -> Float32[Array, ""]:
    """Write an angle between -π and π, without a rounding error where it is there already.

    **Arguments:**

    - `angle`: an angle in radians.

    **Returns:**

    It less a number of full turns.
    """
    return angle - 2 * math.pi * jnp.round(angle / (2 * math.pi))


class Pendulum(Hides, BaseEnvironment):
    r"""Abstract: a pendulum with a motor too weak to lift it at once.

    A step costs \( c = \theta^2 + 0.1 \dot\theta^2 + 0.001 u^2 \) for the angle \( \theta \) from
    upright and the angular velocity before the step, and for the action, the torque \( u \) in
    newton meters, clipped to -2 and 2. The reward is
    \( (1 - 2 c / 16.2736044) / T \) with the episode's length \( T \), so a return is at most 1 and
    at least -1. Nothing terminates an episode but its length, which truncates it. Environments give
    `observe`.
    """

    @checked
    def __init__(self, max_episode_length: Count = 200):
        """**Arguments:**

        - `max_episode_length`: steps of an episode, T; at least 1. It is the default time limit and
            scales the reward.
        """
        self.max_episode_length = max_episode_length
        super().__init__(
            observations=spaces.Box(-1.0, 1.0, (2,), jnp.float32),
            actions=spaces.Box(-MAX_TORQUE, MAX_TORQUE, (1,), jnp.float32),
            limit=self.max_episode_length,
        )

    @property
    def hidden_space(self) -> spaces.Box:
        """Cosine, sine and angular velocity."""
        most: Any = np.array([1, 1, MAX_SPEED], np.float32)
        return spaces.Box(-most, most, (3,), jnp.float32)

    def hidden(self, state: EnvState) -> Float32[Array, "3"]:
        """Tell the direction without noise, and the angular velocity."""
        return jnp.append(_direction(state), state.angular_velocity)

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Answer no: only the time limit ends an episode."""
        return jnp.bool_(False)

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Observation, EnvState]:
        """Draw any angle, and an angular velocity between -1 and 1, uniformly."""
        key_state, key_observation = jax.random.split(key)
        start = jax.random.uniform(key_state, (2,), jnp.float32, -1.0, 1.0)
        state = EnvState(jnp.int32(0), angle=math.pi * start[0], angular_velocity=start[1])
        return self.observe(key_observation, state, None, params), state

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: float | Float[Array, ""] | Float[Array, "1"],
        params: EnvParams,
    ) -> tuple[Observation, EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Apply a torque for 0.05 seconds."""
        torque = jnp.asarray(action, jnp.float32).reshape(())
        torque = jnp.clip(torque, -MAX_TORQUE, MAX_TORQUE)
        speed = state.angular_velocity
        cost = wrap(state.angle) ** 2 + 0.1 * speed**2 + 0.001 * torque**2
        acceleration = 1.5 * GRAVITY * jnp.sin(state.angle) + 3 * torque
        speed = jnp.clip(speed + SECONDS_PER_STEP * acceleration, -MAX_SPEED, MAX_SPEED)
        # Wrapped, because a float32 angle of many turns is too coarse.
        angle = wrap(state.angle + SECONDS_PER_STEP * speed)
        state = EnvState(time=state.time + 1, angle=angle, angular_velocity=speed)
        reward = (1 - 2 * cost / WORST_COST) / self.max_episode_length
        observation = self.observe(key, state, action, params)
        return observation, state, reward, self.is_terminated(state, params), {}


def _direction(state: EnvState) -> Observation:
    return jnp.stack([jnp.cos(state.angle), jnp.sin(state.angle)])


class PositionOnlyPendulum(Pendulum):
    """Swing a pendulum up and hold it, seeing its direction but not how fast it turns.

    An observation is cosine and sine of the angle from upright. The rest is as `Pendulum` says. The
    same, step by step, as `PositionOnlyPendulum` of the Python package `popgym` 1.0.7 from the same
    state.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023.
    """

    def observe(
        self, key: PRNGKeyArray, state: EnvState, action: Any, params: EnvParams
    ) -> Observation:
        """Show cosine and sine of the angle."""
        return _direction(state)


class NoisyPositionOnlyPendulum(Pendulum):
    """Swing a pendulum up and hold it, seeing its direction with noise and no velocity.

    An observation is cosine and sine of the angle from upright, each with Gaussian noise of
    standard deviation `noise_sigma`, clipped to -1 and 1. The rest is as `Pendulum` says. The same,
    but for the noise drawn, as `NoisyPositionOnlyPendulum` of the Python package `popgym` 1.0.7
    from the same state.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023.
    """

    @checked
    def __init__(self, max_episode_length: Count = 200, noise_sigma: NonNegative = 0.1):
        """**Arguments:**

        - `max_episode_length`: steps of an episode, T; at least 1.
        - `noise_sigma`: standard deviation of the noise; at least 0. POPGym's Easy, Medium and Hard
            have 0.1, 0.2 and 0.3.
        """
        super().__init__(max_episode_length)
        self.noise_sigma = noise_sigma

    def observe(
        self, key: PRNGKeyArray, state: EnvState, action: Any, params: EnvParams
    ) -> Observation:
        """Show cosine and sine of the angle with noise, clipped to -1 and 1."""
        noise = self.noise_sigma * jax.random.normal(key, (2,), jnp.float32)
        return jnp.clip(_direction(state) + noise, -1.0, 1.0)
