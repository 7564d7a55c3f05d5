"""Causal transformer with a bounded window."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from zoo.kinds import AbstractFiniteMemory
from zoo.parts import Linear, check_sizes
from zoo.registry import register


class _Layer(eqx.Module):
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
        slopes = 2.0 ** (-8.0 * jnp.arange(1, heads + 1) / heads)
        self.bias = -slopes[:, None] * jnp.arange(window)[None]
        self.mix = Linear(width, width, key=keys[1])
        self.network_norm = eqx.nn.LayerNorm(width)
        self.up = Linear(width, 4 * width, key=keys[2])
        self.down = Linear(4 * width, width, key=keys[3])

    def __call__(self, z, age):
        """All tokens of a sequence."""
        mixed = self._attend(jax.vmap(self._heads)(z), age)
        return jax.vmap(self._network)(z + jax.vmap(self.mix)(mixed))

    def recall(self, z):
        """Keys and values of the last tokens that a next one can see."""
        before = self.bias.shape[1] - 1
        _, *keys_values = jnp.moveaxis(jax.vmap(self._heads)(z[len(z) - before :]), 1, 0)
        return tuple(keys_values)

    def next(self, recalled, z, age):
        """The token that follows, whose query meets the keys of those before it."""
        (heads, window), (width,) = self.bias.shape, z.shape
        q, *present = self._heads(z)
        k, v = (jnp.concatenate([x, new[None]]) for x, new in zip(recalled, present, strict=True))
        lag = jnp.arange(window - 1, -1, -1)
        logits = jnp.einsum("hd,khd->hk", q, k) * (width // heads) ** -0.5 + self.bias[:, lag]
        weights = jax.nn.softmax(jnp.where((lag <= age)[None], logits, -jnp.inf), -1)
        mixed = jnp.einsum("hk,khd->hd", weights, v).reshape(width)
        return (k[1:], v[1:]), self._network(z + self.mix(mixed))

    def _heads(self, z):
        """Query, key and value of a token, for each head."""
        heads = self.bias.shape[0]
        return self.queries_keys_values(self.attention_norm(z)).reshape(3, heads, -1)

    def _network(self, z):
        return z + self.down(jax.nn.gelu(self.up(self.network_norm(z))))

    def _attend(self, qkv, age):
        """Blocks of `window` queries, each with the keys of its own block and the one before."""
        (heads, window), (length, _, _, size) = self.bias.shape, qkv.shape
        blocks = -(-length // window)
        padding = blocks * window - length
        qkv = jnp.pad(qkv, ((0, padding), (0, 0), (0, 0), (0, 0)))
        q, k, v = jnp.moveaxis(qkv.reshape(blocks, window, 3, heads, size), 2, 0)
        age = jnp.pad(age, (0, padding)).reshape(blocks, window)

        def with_block_before(x):
            before = jnp.concatenate([jnp.zeros_like(x[:1]), x[:-1]])
            return jnp.concatenate([before, x], 1)

        k, v = with_block_before(k), with_block_before(v)
        lag = jnp.arange(window)[:, None] + window - jnp.arange(2 * window)[None]
        seen = (lag >= 0) & (lag < window)
        allowed = seen[None] & (lag[None] <= jnp.maximum(age, 0)[..., None])
        bias = jnp.where(seen[None], self.bias[:, jnp.clip(lag, 0, window - 1)], 0)
        logits = jnp.einsum("bqhd,bkhd->bhqk", q, k) * size**-0.5 + bias[None]
        logits = jnp.where(allowed[:, None], logits, -jnp.inf)
        weights = jax.nn.softmax(logits, -1)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
        return mixed.reshape(blocks * window, heads * size)[:length]


class Transformer(AbstractFiniteMemory):
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
        - `hidden`: width of every layer and of `y`.
        - `depth`: number of layers.
        - `heads`: a divisor of `hidden`.
        - `window`: steps that a layer attends to, the present one among them.
        """
        check_sizes(inputs=inputs, hidden=hidden, depth=depth, heads=heads, window=window)
        if hidden % heads:
            raise ValueError(f"`heads` (={heads}) must divide `hidden` (={hidden}).")
        keys = jax.random.split(key, depth + 1)
        self.embed = Linear(inputs, hidden, key=keys[0])
        self.layers = tuple(_Layer(hidden, heads, window, k) for k in keys[1:])
        self.norm = eqx.nn.LayerNorm(hidden)
        self.inputs, self.hidden = inputs, hidden

    @property
    def reach(self) -> int:
        """The sum over the layers."""
        return sum(layer.bias.shape[1] - 1 for layer in self.layers)

    def respond(
        self, tokens: Float[Array, "tokens inputs"], age: Int[Array, " tokens"]
    ) -> Float[Array, "tokens outputs"]:
        z = jax.vmap(self.embed)(tokens)
        for layer in self.layers:
            z = layer(z, age)
        return jax.vmap(self.norm)(z)

    def recall(
        self, tokens: Float[Array, "reach inputs"], age: Int[Array, " reach"]
    ) -> tuple[tuple[Array, Array], ...]:
        """Keys and values, layer by layer."""
        z, recalled = jax.vmap(self.embed)(tokens), []
        for layer in self.layers:
            recalled.append(layer.recall(z))
            z = layer(z, age)
        return tuple(recalled)

    def respond_next(
        self,
        recalled: tuple[tuple[Array, Array], ...],
        x: Float[Array, " inputs"],
        age: Int[Array, ""],
    ) -> tuple[tuple[tuple[Array, Array], ...], Float[Array, " outputs"]]:
        z, later = self.embed(x), []
        for layer, keys_values in zip(self.layers, recalled, strict=True):
            keys_values, z = layer.next(keys_values, z, age)
            later.append(keys_values)
        return tuple(later), self.norm(z)


register("transformer", Transformer)
