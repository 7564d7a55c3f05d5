"""Networks of action values: one value for each action, or a value of any action."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from gymnax.environments import spaces
from jaxtyping import Array, Float

import zoo
from agents.networks.layered import MakeLayers, layered_network
from agents.networks.layers import Layers, Linear
from agents.networks.recurrent import Recurrent


class ActionValues(eqx.Module):
    """A value for each action, from hidden layers.

    **Attributes:**

    - `hidden`: layers behind the memory.
    - `advantage`: what each action adds; without `state_value`, its value.
    - `state_value`: what all have in common, in a dueling head: `Q = V + A - mean A`.

    Source: Wang et al. (2016), *Dueling Network Architectures for Deep Reinforcement Learning*.
    """

    hidden: Layers
    advantage: Linear
    state_value: Linear | None

    def __call__(self, y: Float[Array, " outputs"]) -> Float[Array, " actions"]:
        """Return Q for the memory's output at one step."""
        y = self.hidden(y)
        advantage = self.advantage(y)
        if self.state_value is None:
            return advantage
        return self.state_value(y) + advantage - jnp.mean(advantage)


def value_of(values: Float[Array, "*batch actions"], action: Any) -> Float[Array, "*batch"]:
    """Return the values of the actions that were taken."""
    return jnp.take_along_axis(values, action[..., None], axis=-1)[..., 0]


def check_discrete(action_space: Any, env_name: str) -> None:
    """Raise `ValueError` for an environment whose actions are not `Discrete`."""
    if not isinstance(action_space, spaces.Discrete):
        raise ValueError(f"`env` (={env_name}) must have Discrete actions, not {action_space!r}.")


def q_network(
    observation_space: Any,
    action_space: Any,
    memory: zoo.Spec,
    *,
    dueling: bool,
    key: Array,
    **sizes: Any,
) -> Recurrent:
    """Make a network whose head gives a value for each action.

    **Arguments:**

    - `action_space`: `Discrete`.
    - `dueling`: whether the head is, see `ActionValues`.
    - `sizes`: the others of `agents.networks.layered.layered_network`.

    **Raises:**

    `ValueError` for a width that is not one, and for a normalized layer of one number.
    """
    encoder_key, memory_key, hidden_key, action_key, state_key = jax.random.split(key, 5)

    def head(outputs: int, layers: MakeLayers) -> ActionValues:
        hidden, width = layers(outputs, hidden_key)
        return ActionValues(
            hidden,
            Linear(width, action_space.n, scale=0.01, key=action_key),
            Linear(width, 1, scale=0.01, key=state_key) if dueling else None,
        )

    return layered_network(
        observation_space,
        action_space,
        memory,
        head=head,
        encoder_key=encoder_key,
        memory_key=memory_key,
        **sizes,
    )
