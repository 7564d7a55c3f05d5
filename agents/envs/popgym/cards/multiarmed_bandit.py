"""MultiarmedBandit: find the arm that pays most often, within an episode."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from zoo.annotations import Count, checked

from ...core.base import BaseEnvironment
from ...core.hidden import Hides


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of MultiarmedBandit; batched states have leading axes.

    `time`: steps taken, int32. `chances`: probability with which each arm pays, or -1 for an arm
    that was never pulled, shape `(arms,)`, float32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    chances: Any


class MultiarmedBandit(Hides, BaseEnvironment):
    r"""Pull arms that pay with unknown probabilities, new ones in every episode.

    An observation is whether the last pull paid (0 after a reset). A pull that pays gives
    \( 1 / T \), another one as much less than zero, so the best return is 1 and that of a random
    policy 0 on average. The probabilities are uniform in [0, 1): who knows those of \( n \) arms
    gets \( (n - 1) / (n + 1) \) on average. An episode never terminates and is truncated after
    \( T \) steps.

    An arm's probability is drawn when it is pulled for the first time, which costs a reset nothing
    and has the distribution of drawing all of them beforehand. The same, step by step, as
    `MultiarmedBandit` of the Python package `popgym` 1.0.7 with the same probabilities and luck. It
    says that an agent needs its previous action.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023.
    """

    needs_previous_action = True

    @checked
    def __init__(self, arms: Count = 10, episode_length: Count = 200):
        """**Arguments:**

        - `arms`: number of arms; at least 1. POPGym's Easy, Medium and Hard have 10, 20 and 30.
        - `episode_length`: the T of the rewards, and the default time limit; at least 1. Easy,
            Medium and Hard have 200, 400 and 600.
        """
        self.arms = arms
        self.episode_length = episode_length
        super().__init__(
            observations=spaces.Discrete(2),
            actions=spaces.Discrete(self.arms),
            limit=self.episode_length,
        )

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Int32[Array, ""], EnvState]:
        """Put up new arms."""
        chances = jnp.full((self.arms,), -1, jnp.float32)
        return jnp.int32(0), EnvState(time=jnp.int32(0), chances=chances)

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Pull an arm."""
        action = jnp.asarray(action, jnp.int32)
        fresh, luck = jax.random.uniform(key, (2,), jnp.float32)
        pulled = jnp.arange(self.arms, dtype=jnp.int32) == action
        chances = jnp.where(pulled & (state.chances < 0), fresh, state.chances)
        pays = jnp.any(pulled & (luck < chances))
        scale = jnp.float32(1 / self.episode_length)
        reward = jnp.where(pays, scale, -scale)
        state = EnvState(time=state.time + 1, chances=chances)
        return pays.astype(jnp.int32), state, reward, self.is_terminated(state, params), {}

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether there is nothing more to win: never."""
        return jnp.zeros((), bool)

    @property
    def hidden_space(self) -> spaces.Box:
        """A probability for each arm."""
        return spaces.Box(0.0, 1.0, (self.arms,), jnp.float32)

    def hidden(self, state: EnvState) -> Float32[Array, " arms"]:
        """Tell how often each arm pays."""
        return state.chances

    def uncovered(self, key: PRNGKeyArray, state: EnvState) -> EnvState:
        """Draw what every arm pays."""
        chances = jax.random.uniform(key, (self.arms,), jnp.float32)
        return state.replace(chances=chances)  # pyright: ignore
