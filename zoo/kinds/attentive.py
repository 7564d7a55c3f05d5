"""Finite memories of layers that attend to the last tokens."""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from zoo.kinds.finite import AbstractFiniteMemory
from zoo.parts import RingBuffer, attention, attention_of_last


class AbstractAttentiveLayer(eqx.Module):
    """A layer in which a token attends to the last `window` ones of its episode.

    A layer states what a token brings along (`projections`), how a query meets keys (`aligned`),
    and what becomes of what was read (`output`). All tokens of a sequence at once and the one that
    follows, on keys and values that were kept, come with it.
    """

    window: eqx.AbstractVar[int]

    @abstractmethod
    def projections(self, z: Float[Array, " width"]) -> Float[Array, "three heads size"]:
        """Query, key and value of a token, for each head."""

    @abstractmethod
    def aligned(
        self, q: Float[Array, "*tokens heads size"]
    ) -> tuple[Float[Array, "*tokens heads size"], Float[Array, "... heads window"]]:
        """The query for the keys, and what is added to the logits by distance; see `attention`."""

    @abstractmethod
    def output(
        self, z: Float[Array, " width"], read: Float[Array, " width"]
    ) -> Float[Array, " width"]:
        """The layer's output at a token, of the token and the mean of the values."""

    def __call__(
        self, z: Float[Array, "tokens width"], age: Int[Array, " tokens"]
    ) -> Float[Array, "tokens width"]:
        """All tokens of a sequence."""
        sound = jax.vmap(_is_sound)(z)
        q, k, v = jnp.moveaxis(jax.vmap(self.projections)(jnp.where(sound[:, None], z, 0)), 1, 0)
        q, bias = self.aligned(q)
        return jax.vmap(self.output)(z, attention(q, k, v, bias, age, sound))

    def recall(self, z: Float[Array, "tokens width"]) -> RingBuffer:
        """Keys and values of the last tokens that a next one can see, and room for its own."""
        seen = jax.vmap(self._projected)(z[len(z) - self.window + 1 :])
        by_head = jnp.moveaxis(seen, 0, 2)
        _, k, v = jnp.pad(by_head, ((0, 0), (0, 0), (1, 0), (0, 0)))
        return RingBuffer.of((k, v), axis=1)

    def next(
        self, recalled: RingBuffer, z: Float[Array, " width"], age: Int[Array, ""]
    ) -> tuple[RingBuffer, Float[Array, " width"]]:
        """The token that follows, whose query meets the keys of those before it."""
        q, k, v = self._projected(z)
        recalled = recalled.append((k, v))
        (k, v), lag = recalled.rows, recalled.lags()
        q, bias = self.aligned(q)
        return recalled, self.output(z, attention_of_last(q, k, v, bias, lag, age))

    def _projected(self, z):
        """Query, key and value of a token, which an overflow makes a NaN of the key alone."""
        sound = _is_sound(z)
        q, k, v = self.projections(jnp.where(sound, z, 0))
        return jnp.stack([q, jnp.where(sound, k, jnp.nan), v])


def _is_sound(z):
    # An embedding of finite inputs may overflow.
    return jnp.all(jnp.isfinite(z))


class AbstractAttentiveMemory(AbstractFiniteMemory):
    """An embedding and layers of attention, one after another.

    Its reach is the sum of the layers'. A `stepper` keeps keys and values.
    """

    embed: eqx.AbstractVar[Any]
    layers: eqx.AbstractVar[tuple[Any, ...]]

    def finish(self, z: Float[Array, " width"]) -> Float[Array, " outputs"]:
        """The output at a token, of that of the last layer: the same by default."""
        return z

    @property
    def reach(self) -> int:
        """The sum over the layers."""
        return sum(layer.window - 1 for layer in self.layers)

    def respond(
        self, tokens: Float[Array, "tokens inputs"], age: Int[Array, " tokens"]
    ) -> Float[Array, "tokens outputs"]:
        z = jax.vmap(self.embed)(tokens)
        for layer in self.layers:
            z = layer(z, age)
        return jax.vmap(self.finish)(z)

    def recall(
        self, tokens: Float[Array, "reach inputs"], age: Int[Array, " reach"]
    ) -> tuple[RingBuffer, ...]:
        """Keys and values, layer by layer."""
        z, recalled = jax.vmap(self.embed)(tokens), []
        for layer in self.layers:
            recalled.append(layer.recall(z))
            z = layer(z, age)
        return tuple(recalled)

    def respond_next(
        self,
        recalled: tuple[RingBuffer, ...],
        x: Float[Array, " inputs"],
        age: Int[Array, ""],
    ) -> tuple[tuple[RingBuffer, ...], Float[Array, " outputs"]]:
        z, later = self.embed(x), []
        for layer, keys_values in zip(self.layers, recalled, strict=True):
            keys_values, z = layer.next(keys_values, z, age)
            later.append(keys_values)
        return tuple(later), self.finish(z)
