"""Networks for learning at every step: sparse weights, and layers normalized without parameters."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import zoo
from agents.networks.encoders import Convolutions
from agents.networks.layers import check_normalized, sparse_weights
from agents.networks.recurrent import Recurrent, around_memory
from zoo.parts import check_counts, layer_norm


class SparseLinear(eqx.Module):
    """A linear layer that begins with sparse weights and no bias: `W x + b`."""

    w: Float[Array, "outputs inputs"]
    b: Float[Array, " outputs"]

    def __init__(self, inputs: int, outputs: int, *, sparsity: float = 0.9, key: Array):
        """**Arguments:**

        - `inputs`, `outputs`: widths.
        - `sparsity`: share of each row's weights that begin with zero.
        """
        self.w = sparse_weights(key, outputs, inputs, sparsity=sparsity)
        self.b = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """Return `W x + b`."""
        return x @ self.w.T + self.b


class SparseLayer(eqx.Module):
    """A sparse linear layer, normalized, with a leaky ReLU."""

    linear: SparseLinear

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """Return `leaky_relu(layer_norm(W x + b))`."""
        return jax.nn.leaky_relu(layer_norm(self.linear(x)))


class SparseLayers(eqx.Module):
    """Hidden layers, any number of them, and a linear one."""

    hidden: tuple[SparseLayer, ...]
    output: SparseLinear

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """Return the output of one vector."""
        for layer in self.hidden:
            x = layer(x)
        return self.output(x)


def sparse_recurrent(
    observation_space: Any,
    action_space: Any,
    memory: zoo.Spec,
    *,
    outputs: int,
    head: Callable[[SparseLayers], Callable[[Array], Any]],
    encoder_size: int,
    encoder_credit: str = "segment",
    head_size: int,
    head_layers: int = 1,
    sparsity: float = 0.9,
    previous_action: bool = False,
    previous_reward: bool = False,
    key: Array,
) -> Recurrent:
    """Make a network of sparse layers around a memory.

    **Arguments:**

    - `observation_space`, `action_space`: gymnax spaces.
    - `memory`: recipe of the memory.
    - `outputs`: numbers behind the last layer.
    - `head`: makes the head of the layers behind the memory, such as `ValueHead`.
    - `encoder_size`: width of the layer in front of the memory; 0 for none.
    - `encoder_credit`: see `around_memory`; with `"segment"` that layer learns from the present
      step only in the RTRL forms.
    - `head_size`, `head_layers`: width and number of the hidden layers behind the memory; width 0
      for none.
    - `sparsity`: share of each row's weights that begin with zero, outside of the memory.
    - `previous_action`, `previous_reward`: whether they are inputs too.

    **Raises:**

    `TypeError` for a space that is not supported; `ValueError` for a width that is not one, and for
    a layer of one number, which the normalization makes 0.
    """
    check_counts(0, encoder_size=encoder_size, head_size=head_size, head_layers=head_layers)
    check_normalized(encoder_size, head_size, head_layers)
    encoder_key, memory_key, *keys = jax.random.split(key, 3 + head_layers)

    def linear(inputs, outputs, key):
        return SparseLinear(inputs, outputs, sparsity=sparsity, key=key)

    def encoder(numbers: int) -> SparseLayer:
        return SparseLayer(linear(numbers, encoder_size, encoder_key))

    def behind(width: int) -> Callable[[Array], Any]:
        widths = [width, *[head_size] * (head_layers if head_size else 0)]
        hidden = [
            SparseLayer(linear(*sizes, k))
            for sizes, k in zip(itertools.pairwise(widths), keys[1:], strict=False)
        ]
        return head(SparseLayers(tuple(hidden), linear(widths[-1], outputs, keys[0])))

    return around_memory(
        observation_space,
        action_space,
        memory,
        encoder=encoder if encoder_size else None,
        encoder_size=encoder_size,
        encoder_credit=encoder_credit,
        convolutions=partial(Convolutions, normalized=True, sparsity=sparsity),
        head=behind,
        previous_action=previous_action,
        previous_reward=previous_reward,
        key=memory_key,
    )
