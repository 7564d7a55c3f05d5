"""Action distributions: categorical, several of them, and Gaussian, all with independent parts."""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class Categorical(eqx.Module):
    """A distribution over `0 … n - 1`; logits need not be normalized."""

    logits: Float[Array, "*batch n"]

    def sample(self, key: Array) -> Int[Array, "*batch"]:
        """Draw an action."""
        return jax.random.categorical(key, self.logits)

    def mode(self) -> Int[Array, "*batch"]:
        """Return the most probable action."""
        return jnp.argmax(self.logits, axis=-1)

    def log_prob(self, action: Int[Array, "*batch"]) -> Float[Array, "*batch"]:
        """Return the logarithm of the probability of `action`."""
        log_p = jax.nn.log_softmax(self.logits)
        return jnp.take_along_axis(log_p, action[..., None], axis=-1)[..., 0]

    def entropy(self) -> Float[Array, "*batch"]:
        """Return the entropy, in nats."""
        log_p = jax.nn.log_softmax(self.logits)
        return -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)


class MultiCategorical(eqx.Module):
    """Independent categorical distributions, one per number of a `MultiDiscrete` action.

    Logits are those of the first number, then of the second, …; `nvec` says how many values each
    has.
    """

    logits: Float[Array, "*batch n"]
    nvec: tuple[int, ...] = eqx.field(static=True)

    def sample(self, key: Array) -> Int[Array, "*batch numbers"]:
        """Draw an action."""
        keys = jax.random.split(key, len(self.nvec))
        draws = [part.sample(k) for part, k in zip(self._parts(), keys, strict=True)]
        return jnp.stack(draws, axis=-1)

    def mode(self) -> Int[Array, "*batch numbers"]:
        """Return the most probable action."""
        return jnp.stack([part.mode() for part in self._parts()], axis=-1)

    def log_prob(self, action: Int[Array, "*batch numbers"]) -> Float[Array, "*batch"]:
        """Return the logarithm of the probability of `action`."""
        log_p = [part.log_prob(action[..., i]) for i, part in enumerate(self._parts())]
        return jnp.sum(jnp.stack(log_p, axis=-1), axis=-1)

    def entropy(self) -> Float[Array, "*batch"]:
        """Return the entropy, in nats."""
        entropies = [part.entropy() for part in self._parts()]
        return jnp.sum(jnp.stack(entropies, axis=-1), axis=-1)

    def _parts(self) -> list[Categorical]:
        ends = list(itertools.accumulate(self.nvec))
        return [Categorical(part) for part in jnp.split(self.logits, ends[:-1], axis=-1)]


class Gaussian(eqx.Module):
    """Independent normal distributions, one per action dimension."""

    mean: Float[Array, "*batch n"]
    log_std: Float[Array, "*batch n"]

    def sample(self, key: Array) -> Float[Array, "*batch n"]:
        """Draw an action."""
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.mean + jnp.exp(self.log_std) * noise

    def mode(self) -> Float[Array, "*batch n"]:
        """Return the mean."""
        return self.mean

    def log_prob(self, action: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        """Return the logarithm of the density at `action`."""
        z = (action - self.mean) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * z**2 - self.log_std - 0.5 * math.log(2 * math.pi), axis=-1)

    def entropy(self) -> Float[Array, "*batch"]:
        """Return the entropy, in nats."""
        return jnp.sum(self.log_std + 0.5 * math.log(2 * math.pi * math.e), axis=-1)


Distribution = Categorical | MultiCategorical | Gaussian
"""Of the actions of any action space."""
