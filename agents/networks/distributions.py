"""Action distributions with independent parts: categorical, several of them, and Gaussian."""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
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
        return _log_density((action - self.mean) * jnp.exp(-self.log_std), self.log_std)

    def entropy(self) -> Float[Array, "*batch"]:
        """Return the entropy, in nats."""
        return jnp.sum(self.log_std + 0.5 * math.log(2 * math.pi * math.e), axis=-1)


class TanhGaussian(eqx.Module):
    """Independent normal distributions through a tanh into a box: `center + half tanh(u)`.

    Actions stay inside of the box, and the density is that of the action, with the change of
    variables: `log p(a) = log N(u; mean, std) - log half - log(1 - tanh(u)²)`, the latter as
    `2 (log 2 - u - softplus(-2 u))`, which neither overflows nor cancels.

    Source: Haarnoja et al. (2018), *Soft Actor-Critic: Off-Policy Maximum Entropy Deep
    Reinforcement Learning with a Stochastic Actor*, appendix C.

    **Attributes:**

    - `mean`, `log_std`: of u.
    - `center`, `half`: middle of the box, and half of its sides.
    """

    mean: Float[Array, "*batch n"]
    log_std: Float[Array, "*batch n"]
    center: Float[Array, "*#batch n"]
    half: Float[Array, "*#batch n"]

    def sample(self, key: Array) -> Float[Array, "*batch n"]:
        """Draw an action."""
        return self.sample_and_log_prob(key)[0]

    def sample_and_log_prob(
        self, key: Array
    ) -> tuple[Float[Array, "*batch n"], Float[Array, "*batch"]]:
        """Draw an action, and return the logarithm of its density too.

        Both are exact however near to the box's border the action is.
        """
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        u = self.mean + jnp.exp(self.log_std) * noise
        # Of the noise itself: what is left of it in `u - mean` is rounded, to nothing at last.
        return self._squash(u), _log_density(noise, self.log_std) - self._log_slopes(u)

    def mode(self) -> Float[Array, "*batch n"]:
        """Return the action of the mean: the median of every number."""
        return self._squash(self.mean)

    def log_prob(self, action: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        """Return the logarithm of the density at `action`.

        An action that rounding put on the box's border is read as the nearest one inside.
        """
        inside = 1 - jnp.finfo(self.mean.dtype).eps
        x = jnp.clip((action - self.center) / self.half, -inside, inside)
        u = jnp.arctanh(x)
        return Gaussian(self.mean, self.log_std).log_prob(u) - self._log_slopes(u)

    def entropy(self) -> Float[Array, "*batch"]:
        """Return the entropy, in nats: the normal one and the mean logarithm of the slope.

        The mean is by Gauss-Hermite quadrature, to 1e-5 for standard deviations up to 1.
        """
        nodes, weights = np.polynomial.hermite_e.hermegauss(64)
        nodes, weights = (jnp.asarray(x, self.mean.dtype) for x in (nodes, weights / weights.sum()))
        u = self.mean[..., None] + jnp.tensordot(jnp.exp(self.log_std), nodes, axes=0)
        slope = _log_slope(u) @ weights + jnp.log(self.half)
        normal = self.log_std + 0.5 * math.log(2 * math.pi * math.e)
        return jnp.sum(normal + slope, axis=-1)

    def _squash(self, u: Array) -> Array:
        return self.center + self.half * jnp.tanh(u)

    def _log_slopes(self, u: Array) -> Array:
        """How many times larger a volume is after the squashing; its logarithm."""
        return jnp.sum(jnp.log(self.half) + _log_slope(u), axis=-1)


def _log_density(z: Array, log_std: Array) -> Array:
    """Of independent normal distributions, so many standard deviations from their means."""
    return jnp.sum(-0.5 * z**2 - log_std - 0.5 * math.log(2 * math.pi), axis=-1)


def _log_slope(u: Array) -> Array:
    """`log(1 - tanh(u)²)`."""
    return 2 * (math.log(2) - u - jax.nn.softplus(-2 * u))


Distribution = Categorical | MultiCategorical | Gaussian | TanhGaussian
"""Of the actions of any action space."""
