"""Action distributions: categorical, and Gaussian with independent dimensions."""

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
