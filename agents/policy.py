"""A trained policy, to act with outside of this package's own loops."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from agents.networks import ActorCritic, Inputs
from agents.normalization import RunningStatistics
from agents.ppo import PPO, PPOState
from agents.training import load_run


class PolicyState(eqx.Module):
    """What a policy carries from one step to the next.

    **Attributes:**

    - `memory`: the memory's state.
    - `action`: the previous action.
    """

    memory: Any
    action: Array


class Policy(eqx.Module):
    """A network with everything it needs to act in one environment; `jax.vmap` it over several.

    **Attributes:**

    - `network`: the trained network.
    - `observation_statistics`: for normalizing observations, or `None`.
    """

    network: ActorCritic
    observation_statistics: RunningStatistics | None

    def init_state(self) -> PolicyState:
        """The state before the first observation.

        **Returns:**

        `PolicyState`.
        """
        space = self.network.action_space
        return PolicyState(self.network.memory.init_state(), jnp.zeros(space.shape, space.dtype))

    def act(
        self,
        state: PolicyState,
        observation: Any,
        begin: Any,
        reward: Any = 0.0,
        *,
        key: Array | None = None,
    ) -> tuple[PolicyState, Array]:
        """Choose an action.

        **Arguments:**

        - `state`: as `init_state` or the previous call returned it.
        - `observation`: as the environment gives it.
        - `begin`: whether it is the first of an episode. The memory is then reset first.
        - `reward`: the previous reward; only read by networks that take it as an input.
        - `key`: PRNG key to draw the action with; the most probable action without one.

        **Returns:**

        `(state, action)`.
        """
        if self.observation_statistics is not None:
            observation = self.observation_statistics.normalize(observation)
        inputs = Inputs(observation, state.action, jnp.asarray(reward), jnp.asarray(begin))
        memory, (policy, _) = self.network.step(state.memory, inputs)
        action = policy.mode() if key is None else policy.sample(key)
        action = action.astype(state.action.dtype)
        return PolicyState(memory, action), action


def load_policy(folder: str | Path, *, seed: int = 0) -> Policy:
    """The policy that a run has trained.

    **Arguments:**

    - `folder`: the run's folder, as given to `agents.train`.
    - `seed`: which of the run's seeds, counted from 0.

    **Returns:**

    `Policy`.

    **Raises:**

    `CheckpointError` without a sound checkpoint; `ValueError` for a seed that the run does not
    have.
    """
    _, state, _ = load_run(folder, PPO.from_dict)
    return policy_of(state, seed)


def policy_of(state: PPOState, seed: int = 0) -> Policy:
    """The policy of one seed.

    **Arguments:**

    - `state`: of all seeds, as `agents.training.load_run` gives it.
    - `seed`: which of the seeds, counted from 0.

    **Returns:**

    `Policy`.

    **Raises:**

    `ValueError` for a seed that the state does not have.
    """
    seeds = state.iteration.shape[0]
    if not 0 <= seed < seeds:
        raise ValueError(f"`seed` (={seed}) must be in 0 … {seeds - 1}: the run has {seeds} seeds.")
    network, statistics = jax.tree.map(
        lambda x: x[seed], (state.network, state.observation_statistics)
    )
    return Policy(network, statistics)
