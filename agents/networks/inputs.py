"""What a network sees at one step, and what its memory reads of it."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import scan
from agents.networks.spaces import by_content, encode
from scan.trees import described
from zoo.parts.checks import check_shapes, shown


class Inputs(eqx.Module):
    """What a network sees at one step.

    **Attributes:**

    - `observation`: as the environment gives it.
    - `action`: the previous action; the network ignores it where `begin`.
    - `reward`: the previous reward; the network ignores it where `begin`.
    - `begin`: whether the observation is the first of an episode.
    """

    observation: Any
    action: Array
    reward: Float[Array, "..."]
    begin: Bool[Array, "..."]


def beginning(inputs: Inputs, begin: Any) -> Inputs:
    """Return the inputs, with a caller's episode borders added to their own.

    **Raises:**

    `TypeError` for inputs that are none, and for a `begin` that is not boolean; `ValueError` for
    one of another shape than that of the inputs.
    """
    if not isinstance(inputs, Inputs):
        found = described(inputs) if eqx.is_array_like(inputs) else shown(inputs)
        raise TypeError(
            f"`inputs` (={found}) must be agents.networks.Inputs, which hold an observation."
        )
    if begin is None or begin is False:
        return inputs
    begin = scan.check_begin(begin)
    check_shapes(jnp.shape(inputs.begin), "`inputs.begin`", begin=begin)
    return eqx.tree_at(lambda i: i.begin, inputs, inputs.begin | begin)


class Features(eqx.Module):
    """The memory's input: the observation, previous action and reward as numbers, and an encoder.

    **Attributes:**

    - `encoder`: the layer in front of the memory; `None` for none.
    - `observation_space`, `action_space`: gymnax spaces.
    - `previous_action`, `previous_reward`: whether they are read.
    """

    encoder: Callable[[Array], Array] | None
    observation_space: Any = eqx.field(static=True, converter=by_content)
    action_space: Any = eqx.field(static=True, converter=by_content)
    previous_action: bool = eqx.field(static=True)
    previous_reward: bool = eqx.field(static=True)

    def numbers(self, inputs: Inputs) -> Float[Array, " numbers"]:
        """What is read at one step, as one vector: the observation's numbers come first."""
        parts = [encode(self.observation_space, inputs.observation)]
        if self.previous_action:
            action = encode(self.action_space, inputs.action)
            parts.append(jnp.where(inputs.begin, 0, action))
        if self.previous_reward:
            parts.append(jnp.where(inputs.begin, 0, inputs.reward)[None])
        return jnp.concatenate(parts)

    def embed(self, numbers: Float[Array, " numbers"]) -> Float[Array, " features"]:
        """The memory's input, from the numbers that are read."""
        return numbers if self.encoder is None else self.encoder(numbers)

    def __call__(self, inputs: Inputs) -> Float[Array, " features"]:
        """Return the memory's input at one step."""
        return self.embed(self.numbers(inputs))
