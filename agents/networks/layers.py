"""Layers without a memory."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from zoo.parts import check_norm_width, layer_norm


def relu(x: Array) -> Array:
    """JAX's own, which cannot be pickled, and neither could a policy that has it."""
    return jax.nn.relu(x)


def tanh(x: Array) -> Array:
    """JAX's own, for the same reason."""
    return jnp.tanh(x)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"relu": relu, "tanh": tanh}
"""Activations by name."""


def orthogonal(key: Array, shape: tuple[int, int], *, scale: float) -> Float[Array, "rows columns"]:
    """Draw a matrix with orthonormal rows or columns, whichever are fewer, times a scale."""

    # Of several seeds one after another: a batch of factorizations waits for threads of XLA's pool
    # from inside of it, and where there are no more than two, for ever.
    @jax.custom_batching.sequential_vmap
    def draw(key):
        return jax.nn.initializers.orthogonal(scale)(key, shape)

    return draw(key)


def sparse_weights(
    key: Array, outputs: int, inputs: int, *, sparsity: float
) -> Float[Array, "outputs inputs"]:
    """Draw weights of which each row has the same share of zeros, at random places.

    The others are uniform in ±1/√`inputs`. At least one of a row is not zero.

    Source: Elsayed, Vasan and Mahmood (2024), *Streaming Deep Reinforcement Learning Finally
    Works*.
    """
    weight_key, place_key = jax.random.split(key)
    shape, bound = (outputs, inputs), inputs**-0.5
    kept = max(1, round((1 - sparsity) * inputs))
    rank = jnp.argsort(jnp.argsort(jax.random.uniform(place_key, shape), axis=1), axis=1)
    return jnp.where(rank < kept, jax.random.uniform(weight_key, shape, float, -bound, bound), 0)


class Linear(eqx.Module):
    """A linear layer with orthogonal weights, as policy-gradient methods start it: `W x + b`."""

    w: Float[Array, "outputs inputs"]
    b: Float[Array, " outputs"]

    def __init__(self, inputs: int, outputs: int, *, scale: float = math.sqrt(2), key: Array):
        """**Arguments:**

        - `inputs`, `outputs`: widths.
        - `scale`: singular value of the weights.
        """
        self.w = orthogonal(key, (outputs, inputs), scale=scale)
        self.b = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """Return `W x + b`."""
        # Input first: a batch of it then stays row-major through the product.
        return x @ self.w.T + self.b


class Encoder(eqx.Module):
    """A linear layer with a ReLU or another activation, in front of a memory."""

    linear: Linear
    activation: Callable[[Array], Array] = eqx.field(static=True, default=relu)

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """Return the memory's input."""
        return self.activation(self.linear(x))


class Layer(eqx.Module):
    """A linear layer, normalized or not, with a leaky ReLU."""

    linear: Linear
    normalized: bool = eqx.field(static=True)

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """Return `leaky_relu(layer_norm(W x + b))`."""
        x = self.linear(x)
        return jax.nn.leaky_relu(layer_norm(x) if self.normalized else x)


def check_normalized(encoder_size: int, head_size: int, head_layers: int = 1) -> None:
    """Raise `ValueError` for a normalized layer of one number, which is 0 whatever it reads.

    **Arguments:**

    - `encoder_size`, `head_size`, `head_layers`: widths of the layers in front of a memory and
      behind it, and number of those behind it; 0 for none.
    """
    check_norm_width(encoder_size=encoder_size, head_size=head_size if head_layers else 0)


class Layers(eqx.Module):
    """Hidden layers of one width, any number of them."""

    layers: tuple[Layer, ...]

    def __init__(self, inputs: int, width: int, count: int, *, normalized: bool, key: Array):
        """**Arguments:**

        - `inputs`, `width`: of what comes in, and of every layer.
        - `count`: how many layers; 0 for none.
        - `normalized`: see `Layer`.
        """
        widths = [inputs, *[width] * count]
        self.layers = tuple(
            Layer(Linear(n, width, key=k), normalized)
            for n, k in zip(widths[:-1], jax.random.split(key, max(count, 1)), strict=False)
        )

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """Return the output of the last layer."""
        for layer in self.layers:
            x = layer(x)
        return x


class TwoLayers(eqx.Module):
    """A hidden layer of some width with a ReLU or another activation, and a linear layer whose
    weights have a scale."""

    hidden: Linear
    output: Linear
    activation: Callable[[Array], Array] = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        width: int,
        outputs: int,
        *,
        scale: float,
        activation: Callable[[Array], Array] = relu,
        keys: tuple[Array, Array],
    ):
        """**Arguments:**

        - `inputs`, `width`, `outputs`: widths, from the first layer to the last.
        - `scale`: singular value of the last layer's weights.
        - `activation`: behind the hidden layer.
        - `keys`: PRNG keys of the two layers.
        """
        self.hidden = Linear(inputs, width, key=keys[0])
        self.output = Linear(width, outputs, scale=scale, key=keys[1])
        self.activation = activation

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """Return the output of one vector."""
        return self.output(self.activation(self.hidden(x)))
