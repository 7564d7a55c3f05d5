"""Running mean and variance, as state."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

NORMALIZED_LIMIT = 10.0
"""The largest magnitude of what is normalized, if nothing else is said."""

_SMALL = 1e-8  # keeps the variance of a constant feature from being divided by
_UPDATES = 2.0**20  # in float32 one among more of them would be lost in rounding


class RunningStatistics(eqx.Module):
    """Mean and (biased) variance of everything seen so far, one of each per feature, and its count.

    Of nothing, the mean is 0 and the variance 1.
    """

    mean: Float[Array, "*shape"]
    variance: Float[Array, "*shape"]
    # Not an integer, which would overflow within an hour of a fast machine.
    count: Float[Array, ""]

    @staticmethod
    def init(shape: tuple[int, ...], dtype: Any = float) -> "RunningStatistics":
        """Start with statistics of nothing, for samples of a shape."""
        return RunningStatistics(
            jnp.zeros(shape, dtype), jnp.ones(shape, dtype), jnp.zeros((), dtype)
        )

    def update(self, samples: Float[Array, "..."]) -> "RunningStatistics":
        """Return the statistics after more samples, of any leading axes; features are not pooled.

        After a million updates with as many samples each, older ones fade.

        Source: Chan et al. (1979), the pairwise update of mean and variance.
        """
        samples = samples.reshape(-1, *self.mean.shape).astype(self.mean.dtype)
        new = samples.shape[0]
        mean, variance = samples.mean(0), samples.var(0)
        old = jnp.minimum(self.count, _UPDATES * new)
        total = old + new
        difference = mean - self.mean
        merged = (
            self.variance * old + variance * new + difference**2 * (old * new / total)
        ) / total
        return RunningStatistics(self.mean + difference * (new / total), merged, total)

    def normalize(self, sample: Float[Array, "*shape"], limit: float = NORMALIZED_LIMIT) -> Array:
        """Shift and scale one sample to zero mean and unit variance, clipped at `limit`."""
        return jnp.clip((sample - self.mean) / jnp.sqrt(self.variance + _SMALL), -limit, limit)

    def scale(self, sample: Float[Array, "..."], limit: float = NORMALIZED_LIMIT) -> Array:
        """Scale to unit variance without moving the mean, clipped at `limit`: for rewards.

        Where nothing has varied so far, samples are only clipped.
        """
        variance = jnp.where(self.variance > 0, self.variance, 1)
        return jnp.clip(sample * jax.lax.rsqrt(variance + _SMALL), -limit, limit)
