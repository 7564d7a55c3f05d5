"""Action distributions: categorical, several of them, and Gaussian, all with independent parts."""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class Categorical(eqx.Module):
    """A distribution over `0 … n - 1`.

    **Attributes:**

    - `logits`: shape `[*batch, n]`, not necessarily normalized.
    """

    logits: Float[Array, "*batch n"]

    def sample(self, key: Array) -> Int[Array, "*batch"]:
        """A random action."""
        return jax.random.categorical(key, self.logits)

    def mode(self) -> Int[Array, "*batch"]:
        """The most probable action."""
        return jnp.argmax(self.logits, axis=-1)

    def log_prob(self, action: Int[Array, "*batch"]) -> Float[Array, "*batch"]:
        """The logarithm of the probability of `action`."""
        log_p = jax.nn.log_softmax(self.logits)
        return jnp.take_along_axis(log_p, action[..., None], axis=-1)[..., 0]

    def entropy(self) -> Float[Array, "*batch"]:
        """In nats."""
        log_p = jax.nn.log_softmax(self.logits)
        return -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)


class MultiCategorical(eqx.Module):
    """Independent categorical distributions, one per number of a `MultiDiscrete` action.

    **Attributes:**

    - `logits`: shape `[*batch, sum(nvec)]`: those of the first number, then of the second, …; not
      necessarily normalized.
    - `nvec`: how many values each number has.
    """

    logits: Float[Array, "*batch n"]
    nvec: tuple[int, ...] = eqx.field(static=True)

    def sample(self, key: Array) -> Int[Array, "*batch numbers"]:
        """A random action."""
        keys = jax.random.split(key, len(self.nvec))
        draws = [part.sample(k) for part, k in zip(self._parts(), keys, strict=True)]
        return jnp.stack(draws, axis=-1)

    def mode(self) -> Int[Array, "*batch numbers"]:
        """The most probable action."""
        return jnp.stack([part.mode() for part in self._parts()], axis=-1)

    def log_prob(self, action: Int[Array, "*batch numbers"]) -> Float[Array, "*batch"]:
        """The logarithm of the probability of `action`."""
        log_p = [part.log_prob(action[..., i]) for i, part in enumerate(self._parts())]
        return jnp.sum(jnp.stack(log_p, axis=-1), axis=-1)

    def entropy(self) -> Float[Array, "*batch"]:
        """In nats."""
        entropies = [part.entropy() for part in self._parts()]
        return jnp.sum(jnp.stack(entropies, axis=-1), axis=-1)

    def _parts(self) -> list[Categorical]:
        ends = list(itertools.accumulate(self.nvec))
        return [Categorical(part) for part in jnp.split(self.logits, ends[:-1], axis=-1)]


class Gaussian(eqx.Module):
    """Independent normal distributions, one per action dimension.

    **Attributes:**

    - `mean`: shape `[*batch, n]`.
    - `log_std`: the logarithm of the standard deviations, the same shape.
    """

    mean: Float[Array, "*batch n"]
    log_std: Float[Array, "*batch n"]

    def sample(self, key: Array) -> Float[Array, "*batch n"]:
        """A random action."""
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.mean + jnp.exp(self.log_std) * noise

    def mode(self) -> Float[Array, "*batch n"]:
        """The mean."""
        return self.mean

    def log_prob(self, action: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        """The logarithm of the density at `action`."""
        z = (action - self.mean) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * z**2 - self.log_std - 0.5 * math.log(2 * math.pi), axis=-1)

    def entropy(self) -> Float[Array, "*batch"]:
        """In nats."""
        return jnp.sum(self.log_std + 0.5 * math.log(2 * math.pi * math.e), axis=-1)


Distribution = Categorical | MultiCategorical | Gaussian
"""Of the actions of any action space."""
