"""Networks with layers in front of a memory, and of the same width behind it."""

from collections.abc import Callable
from functools import partial
from typing import Any

from jaxtyping import Array

import zoo
from agents.networks.encoders import Convolutions
from agents.networks.layers import Layer, Layers, Linear, check_normalized
from agents.networks.recurrent import Recurrent, around_memory
from zoo.parts.checks import check_counts

# Hidden layers for so many numbers, and how many come out of them.
MakeLayers = Callable[[int, Array], tuple[Layers, int]]


def layered_network(
    observation_space: Any,
    action_space: Any,
    memory: zoo.Spec,
    *,
    head: Callable[[int, MakeLayers], Callable[[Array], Any]],
    encoder_size: int,
    encoder_credit: str = "segment",
    head_size: int,
    head_layers: int,
    layer_norm: bool,
    previous_action: bool = False,
    previous_reward: bool = False,
    encoder_key: Array,
    memory_key: Array,
) -> Recurrent:
    """Make a network of a layer, a memory, hidden layers and what stands on them.

    **Arguments:**

    - `head`: makes the head, given the width of the memory's output and what makes hidden layers.
    - `encoder_size`: width of the layer in front of the memory; 0 for none.
    - `head_size`, `head_layers`: width and number of the hidden layers behind it.
    - `layer_norm`: whether these layers, and the convolutions of a picture, are normalized, without
      parameters.
    - `encoder_key`, `memory_key`: for the weights of either.

    For the others see `around_memory`.

    **Raises:**

    `ValueError` for a width that is not one, and for a normalized layer of one number.
    """
    check_counts(1, head_size=head_size)
    check_counts(0, encoder_size=encoder_size, head_layers=head_layers)
    if layer_norm:
        check_normalized(encoder_size, head_size, head_layers)

    def encoder(numbers: int) -> Layer:
        return Layer(Linear(numbers, encoder_size, key=encoder_key), layer_norm)

    def layers(inputs: int, key: Array) -> tuple[Layers, int]:
        made = Layers(inputs, head_size, head_layers, normalized=layer_norm, key=key)
        return made, head_size if head_layers else inputs

    return around_memory(
        observation_space,
        action_space,
        memory,
        encoder=encoder if encoder_size else None,
        encoder_size=encoder_size,
        encoder_credit=encoder_credit,
        convolutions=partial(Convolutions, normalized=layer_norm),
        head=lambda outputs: head(outputs, layers),
        previous_action=previous_action,
        previous_reward=previous_reward,
        key=memory_key,
    )
