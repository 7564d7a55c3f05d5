"""Running mean and variance, as state."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

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

    def update(
        self, samples: Float[Array, "..."], counted: Bool[Array, "..."] | None = None
    ) -> "RunningStatistics":
        """Return the statistics after more samples, of any leading axes; features are not pooled.

        After a million updates with as many samples each, older ones fade.

        **Arguments:**

        - `samples`: of any leading axes.
        - `counted`: which of them count, of those axes; by default all.

        Source: Chan et al. (1979), the pairwise update of mean and variance.
        """
        samples = samples.reshape(-1, *self.mean.shape).astype(self.mean.dtype)
        new, where = samples.shape[0], None
        if counted is not None:
            new = jnp.sum(counted).astype(self.count.dtype)
            where = counted.reshape(-1, *(1,) * self.mean.ndim)
        # Of no samples they are NaN, which nothing times it is too.
        mean, variance = (
            jnp.where(new > 0, of_samples(samples, 0, where=where), 0)
            for of_samples in (jnp.mean, jnp.var)
        )
        old = jnp.minimum(self.count, _UPDATES * samples.shape[0])
        total = old + new
        among, difference = jnp.maximum(total, 1), mean - self.mean
        merged = (
            self.variance * old + variance * new + difference**2 * (old * new / among)
        ) / among
        # The mean of equal numbers rounds, and what it is off by would be their variance.
        least = jnp.min(samples, 0, where=where, initial=jnp.inf)
        equal = least == jnp.max(samples, 0, where=where, initial=-jnp.inf)
        equal &= (old == 0) | ((self.variance == 0) & (self.mean == least))
        return RunningStatistics(
            jnp.where(equal, least, self.mean + difference * (new / among)),
            jnp.where(equal, 0, jnp.where(total > 0, merged, self.variance)),
            total,
        )

    def of_a_sample(self) -> "RunningStatistics":
        """Return them with the unbiased variance, n / (n - 1) times as large; before two, 1."""
        enough, others = self.count >= 2, jnp.maximum(self.count - 1, 1)
        variance = jnp.where(enough, self.variance * (self.count / others), 1)
        return RunningStatistics(self.mean, variance, self.count)

    def normalize(self, sample: Float[Array, "*shape"], limit: float = NORMALIZED_LIMIT) -> Array:
        """Shift and scale one sample to zero mean and unit variance, clipped at `limit`."""
        return jnp.clip((sample - self.mean) / jnp.sqrt(self.variance + _SMALL), -limit, limit)

    def scale(self, sample: Float[Array, "..."], limit: float = NORMALIZED_LIMIT) -> Array:
        """Scale to unit variance without moving the mean, clipped at `limit`: for rewards.

        Where nothing has varied so far, samples are only clipped.
        """
        variance = jnp.where(self.variance > 0, self.variance, 1)
        return jnp.clip(sample * jax.lax.rsqrt(variance + _SMALL), -limit, limit)
