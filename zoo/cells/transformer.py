"""Causal transformer with a bounded window."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from zoo.kinds import AbstractAttentiveLayer, AbstractAttentiveMemory
from zoo.parts import Linear, check_heads, check_norm_width, check_sizes
from zoo.registry import register


class _Layer(AbstractAttentiveLayer):
    """Pre-norm attention and a pre-norm network of two linear maps, each with a residual."""

    attention_norm: eqx.nn.LayerNorm
    queries_keys_values: Linear
    bias: Float[Array, "heads window"]
    mix: Linear
    network_norm: eqx.nn.LayerNorm
    up: Linear
    down: Linear

    def __init__(self, width, heads, window, key):
        keys = jax.random.split(key, 4)
        self.attention_norm = eqx.nn.LayerNorm(width)
        self.queries_keys_values = Linear(width, 3 * width, key=keys[0])
        slopes = 2.0 ** (-8.0 * jnp.arange(1, heads + 1, dtype=float) / heads)
        self.bias = -slopes[:, None] * jnp.arange(window, dtype=float)[None]
        self.mix = Linear(width, width, key=keys[1])
        self.network_norm = eqx.nn.LayerNorm(width)
        self.up = Linear(width, 4 * width, key=keys[2])
        self.down = Linear(4 * width, width, key=keys[3])

    @property
    def window(self) -> int:
        return self.bias.shape[1]

    def projections(self, z):
        return self.queries_keys_values(self.attention_norm(z)).reshape(3, len(self.bias), -1)

    def aligned(self, q):
        return q, self.bias

    def output(self, z, read):
        z = z + self.mix(read)
        return z + self.down(jax.nn.gelu(self.up(self.network_norm(z))))


class Transformer(AbstractAttentiveMemory):
    """Causal transformer, each layer of which attends to the last `window` steps.

    Pre-norm layers as in GPT-2, of width `hidden`, with a norm at the end. A learned bias for each
    head and distance, started as in ALiBi, takes the place of positions, which a sliding window
    does not have. Its reach is `depth (window - 1)` steps. Attention is computed in blocks of the
    window: time × window, not time × time.

    Sources: *Language Models are Unsupervised Multitask Learners*, Radford et al. (2019), the
    baseline of Elelimy et al. (2024); *Train Short, Test Long*, Press et al. (2022).
    """

    embed: Linear
    layers: tuple[_Layer, ...]
    norm: eqx.nn.LayerNorm
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        depth: int = 1,
        heads: int = 1,
        window: int = 32,
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of every layer and of `y`, at least 2.
        - `depth`: number of layers.
        - `heads`: a divisor of `hidden`.
        - `window`: steps that a layer attends to, the present one among them.
        """
        check_sizes(inputs=inputs, hidden=hidden, depth=depth, heads=heads, window=window)
        check_heads(hidden, heads)
        check_norm_width(hidden=hidden)
        keys = jax.random.split(key, depth + 1)
        self.embed = Linear(inputs, hidden, key=keys[0])
        self.layers = tuple(_Layer(hidden, heads, window, k) for k in keys[1:])
        self.norm = eqx.nn.LayerNorm(hidden)
        self.inputs, self.hidden = inputs, hidden

    def finish(self, z: Float[Array, " hidden"]) -> Float[Array, " hidden"]:
        """Its norm."""
        return self.norm(z)


register("transformer", Transformer)
