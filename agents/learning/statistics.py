"""Running statistics of observations and returns, as state."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class RunningStatistics(eqx.Module):
    """Mean and variance of everything seen so far, one of each per feature, and its count."""

    mean: Float[Array, "*shape"]
    variance: Float[Array, "*shape"]
    count: Float[Array, ""]

    @staticmethod
    def init(shape: tuple[int, ...]) -> "RunningStatistics":
        """Start with statistics of nothing, mean 0 and variance 1, for samples of a shape."""
        return RunningStatistics(jnp.zeros(shape), jnp.ones(shape), jnp.zeros(()))

    def update(self, samples: Float[Array, "..."]) -> "RunningStatistics":
        """Return the statistics after more samples, with any leading axes; features are never
        pooled.

        Source: Chan et al. (1979), the pairwise update of mean and variance.
        """
        samples = samples.reshape(-1, *self.mean.shape).astype(self.mean.dtype)
        new = samples.shape[0]
        mean, variance = samples.mean(0), samples.var(0)
        total = self.count + new
        difference = mean - self.mean
        merged = (
            self.variance * self.count + variance * new + difference**2 * (self.count * new / total)
        ) / total
        return RunningStatistics(self.mean + difference * (new / total), merged, total)

    def normalize(self, sample: Float[Array, "*shape"], limit: float = 10.0) -> Array:
        """Shift and scale one sample to zero mean and unit variance, clipped at `limit`."""
        return jnp.clip((sample - self.mean) / jnp.sqrt(self.variance + 1e-8), -limit, limit)

    def scale(self, sample: Float[Array, "..."], limit: float = 10.0) -> Array:
        """Scale to unit variance without moving the mean, clipped at `limit`: for rewards."""
        return jnp.clip(sample * jax.lax.rsqrt(self.variance + 1e-8), -limit, limit)
