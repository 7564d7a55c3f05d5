"""Networks of action values: one value for each action, or a value of any action."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from gymnax.environments import spaces
from jaxtyping import Array, Float

import zoo
from agents.networks.encoders import Convolutions
from agents.networks.layers import Layer, Layers, Linear, check_normalized
from agents.networks.recurrent import Recurrent, around_memory
from zoo.parts.checks import check_counts


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
    encoder_size: int,
    encoder_credit: str = "segment",
    head_size: int,
    head_layers: int,
    layer_norm: bool,
    dueling: bool,
    previous_action: bool = False,
    previous_reward: bool = False,
    key: Array,
) -> Recurrent:
    """Make a network whose head gives a value for each action.

    **Arguments:**

    - `action_space`: `Discrete`.
    - `encoder_size`: width of the layer in front of the memory; 0 for none.
    - `head_size`, `head_layers`: width and number of the hidden layers behind it.
    - `layer_norm`: whether these layers, and the convolutions of a picture, are normalized, without
      parameters.
    - `dueling`: whether the head is, see `ActionValues`.

    For the others see `around_memory`.

    **Raises:**

    `ValueError` for a width that is not one, and for a normalized layer of one number.
    """
    check_counts(1, head_size=head_size)
    check_counts(0, encoder_size=encoder_size, head_layers=head_layers)
    if layer_norm:
        check_normalized(encoder_size, head_size, head_layers)
    encoder_key, memory_key, hidden_key, action_key, state_key = jax.random.split(key, 5)

    def head(outputs: int) -> ActionValues:
        behind = head_size if head_layers else outputs
        return ActionValues(
            Layers(outputs, head_size, head_layers, normalized=layer_norm, key=hidden_key),
            Linear(behind, action_space.n, scale=0.01, key=action_key),
            Linear(behind, 1, scale=0.01, key=state_key) if dueling else None,
        )

    return around_memory(
        observation_space,
        action_space,
        memory,
        encoder=(lambda n: Layer(Linear(n, encoder_size, key=encoder_key), layer_norm))
        if encoder_size
        else None,
        encoder_size=encoder_size,
        convolutions=partial(Convolutions, normalized=layer_norm),
        encoder_credit=encoder_credit,
        head=head,
        previous_action=previous_action,
        previous_reward=previous_reward,
        key=memory_key,
    )
