"""POPGym's cart-poles: balance a pole while seeing only positions, or only velocities."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, PRNGKeyArray

from zoo.annotations import Count, NonNegative, checked

from ...core.base import BaseEnvironment
from ...core.hidden import Hides

GRAVITY = 9.8
POLE_MASS = 0.1
TOTAL_MASS = 1.1
HALF_LENGTH = 0.5
FORCE = 10.0
SECONDS_PER_STEP = 0.02
MAX_POSITION = 2.4
MAX_ANGLE = 12 * 2 * math.pi / 360

Observation = Float32[Array, "2"]


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of a cart-pole; batched states have leading axes.

    `time`: steps taken, int32. `position` of the cart in meters, its `velocity`, `angle` of the
    pole in radians (0 is upright) and its `angular_velocity`, all float32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    position: Any
    velocity: Any
    angle: Any
    angular_velocity: Any


class CartPole(Hides, BaseEnvironment):
    """Abstract: a pole on a cart that is pushed to the left (action 0) or to the right (1).

    The cart begins near the middle with the pole nearly upright. Every step gives
    `1 / max_episode_length`, also the one in which the pole falls (beyond 12 degrees) or the cart
    leaves the track (beyond 2.4 m), which terminates the episode. As in POPGym, an episode can end
    in its last step for both reasons, and then both flags are true. Environments give `observe`
    and the `bounds` of what it shows.
    """

    # Twice what ends an episode, so that the observation of a fall is inside.
    bounds: Any = np.array([2 * MAX_POSITION, 2 * MAX_ANGLE], np.float32)

    @checked
    def __init__(self, max_episode_length: Count = 200):
        """**Arguments:**

        - `max_episode_length`: steps of an episode without a fall; at least 1. It is the default
            time limit and scales the reward, so that the best return is 1.
        """
        self.max_episode_length = max_episode_length
        super().__init__(
            observations=spaces.Box(-self.bounds, self.bounds, (2,), jnp.float32),
            actions=spaces.Discrete(2),
            limit=self.max_episode_length,
        )

    @property
    def hidden_space(self) -> spaces.Box:
        """Four numbers; velocities have no bounds."""
        most: Any = np.append(CartPole.bounds, [np.finfo(np.float32).max] * 2)
        return spaces.Box(-most, most, (4,), jnp.float32)

    def hidden(self, state: EnvState) -> Float32[Array, "4"]:
        """Tell position and angle without noise, and their velocities."""
        return jnp.append(_positions(state), _velocities(state))

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether the pole has fallen or the cart has left the track."""
        return (jnp.abs(state.position) > MAX_POSITION) | (jnp.abs(state.angle) > MAX_ANGLE)

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Observation, EnvState]:
        """Draw the four quantities of the state uniformly between -0.05 and 0.05."""
        key_state, key_observation = jax.random.split(key)
        start = jax.random.uniform(key_state, (4,), jnp.float32, -0.05, 0.05)
        state = EnvState(jnp.int32(0), *start)
        return self.observe(key_observation, state, None, params), state

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Observation, EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Push the cart for 0.02 seconds."""
        force = jnp.where(action == 1, jnp.float32(FORCE), jnp.float32(-FORCE))
        sine, cosine = jnp.sin(state.angle), jnp.cos(state.angle)
        moment = POLE_MASS * HALF_LENGTH
        push = (force + moment * state.angular_velocity**2 * sine) / TOTAL_MASS
        inertia = HALF_LENGTH * (4 / 3 - POLE_MASS * cosine**2 / TOTAL_MASS)
        angular_acceleration = (GRAVITY * sine - cosine * push) / inertia
        acceleration = push - moment * angular_acceleration * cosine / TOTAL_MASS
        # Explicit Euler: positions advance by the velocities before the push.
        state = EnvState(
            time=state.time + 1,
            position=state.position + SECONDS_PER_STEP * state.velocity,
            velocity=state.velocity + SECONDS_PER_STEP * acceleration,
            angle=state.angle + SECONDS_PER_STEP * state.angular_velocity,
            angular_velocity=state.angular_velocity + SECONDS_PER_STEP * angular_acceleration,
        )
        observation = self.observe(key, state, action, params)
        reward = jnp.float32(1 / self.max_episode_length)
        return observation, state, reward, self.is_terminated(state, params), {}


def _positions(state: EnvState) -> Observation:
    return jnp.stack([state.position, state.angle])


def _velocities(state: EnvState) -> Observation:
    return jnp.stack([state.velocity, state.angular_velocity])


class PositionOnlyCartPole(CartPole):
    """Balance a pole, seeing the cart's position and the pole's angle but no velocities.

    An observation is position (m) and angle (rad). The rest is as `CartPole` says. The same, step
    by step, as `PositionOnlyCartPole` of the Python package `popgym` 1.0.7 from the same state.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023; the physics: Barto, Sutton and Anderson, "Neuronlike Adaptive Elements That Can Solve
    Difficult Learning Control Problems", 1983.
    """

    def observe(
        self, key: PRNGKeyArray, state: EnvState, action: Any, params: EnvParams
    ) -> Observation:
        """Show the position and the angle."""
        return _positions(state)


class VelocityOnlyCartPole(CartPole):
    """Balance a pole, seeing the velocities of cart and pole but not where they are.

    An observation is velocity (m/s) and angular velocity (rad/s), except for the first one of an
    episode, which is position and angle: that is what `popgym` 1.0.7 does, and it tells the agent
    where it starts. The rest is as `CartPole` says. The same, step by step, as
    `VelocityOnlyCartPole` of that package from the same state.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023.
    """

    bounds: Any = np.full(2, np.finfo(np.float32).max)

    def observe(
        self, key: PRNGKeyArray, state: EnvState, action: Any, params: EnvParams
    ) -> Observation:
        """Show the two velocities; at a reset, position and angle."""
        if action is None:
            return _positions(state)
        return _velocities(state)


class NoisyPositionOnlyCartPole(CartPole):
    """Balance a pole, seeing position and angle with noise, and no velocities.

    An observation is position (m) and angle (rad), each with Gaussian noise of standard deviation
    `noise_sigma`, clipped to the bounds of the observation space (4.8 m, 24 degrees). The rest is
    as `CartPole` says. The same, but for the noise drawn, as `NoisyPositionOnlyCartPole` of the
    Python package `popgym` 1.0.7 from the same state.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023.
    """

    @checked
    def __init__(self, max_episode_length: Count = 200, noise_sigma: NonNegative = 0.1):
        """**Arguments:**

        - `max_episode_length`: steps of an episode without a fall; at least 1.
        - `noise_sigma`: standard deviation of the noise; at least 0. POPGym's Easy, Medium and Hard
            have 0.1, 0.2 and 0.3.
        """
        super().__init__(max_episode_length)
        self.noise_sigma = noise_sigma

    def observe(
        self, key: PRNGKeyArray, state: EnvState, action: Any, params: EnvParams
    ) -> Observation:
        """Show the position and the angle with noise, clipped to the space."""
        noise = self.noise_sigma * jax.random.normal(key, (2,), jnp.float32)
        return jnp.clip(_positions(state) + noise, -self.bounds, self.bounds)
