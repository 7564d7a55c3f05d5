"""Averages over seeds and over time."""

import numpy as np

CONFIDENCE = 0.95


def confidence_band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean over seeds and its 95 % confidence interval by Student's t-distribution.

    **Arguments:**

    - `values`: shape `[points, seeds]`; NaN where a seed has no value.

    **Returns:**

    The mean and the interval's half width, both `[points]`; the half width is NaN where fewer than
    two seeds have a value.
    """
    # A tenth of a second to import, which a training is not to wait for at its start.
    from scipy.special import stdtrit

    present = ~np.isnan(values)
    count = present.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(present, values, 0.0).sum(axis=1) / count
        squares = np.where(present, values - mean[:, None], 0.0) ** 2
        error = np.sqrt(squares.sum(axis=1) / (count - 1) / count)
        half = stdtrit(count - 1, (1 + CONFIDENCE) / 2) * error
    return mean, np.where(count > 1, half, np.nan)


def smooth(values: np.ndarray, window: int) -> np.ndarray:
    """Average over the last `window` points, without those that are NaN.

    **Arguments:**

    - `values`: shape `[points, seeds]`; NaN where a seed has no value.
    - `window`: the number of points; 1 averages nothing.

    **Returns:**

    The same shape. The first points average over what there is; where a seed has no value it has
    the one before, see `last_known`.

    **Raises:**

    `ValueError` if `window` is less than 1.
    """
    if window < 1:
        raise ValueError(f"`smoothing` (={window}) must be at least 1 point")
    present = ~np.isnan(values)

    def window_sum(x: np.ndarray) -> np.ndarray:
        # Each sum by itself: of sums from the start, one huge value would hide all that come later.
        padded = np.concatenate([np.zeros((window - 1, x.shape[1])), x])
        return np.lib.stride_tricks.sliding_window_view(padded, window, axis=0).sum(axis=-1)

    with np.errstate(invalid="ignore"):
        average = window_sum(np.where(present, values, 0.0)) / window_sum(present * 1.0)
    return last_known(np.where(present, average, np.nan) if window > 1 else values)


def last_known(values: np.ndarray) -> np.ndarray:
    """Let every seed keep its value where it has none.

    No episode of a seed may have ended in an iteration; a mean without this seed would jump.

    **Arguments:**

    - `values`: shape `[points, seeds]`; NaN where a seed has no value.

    **Returns:**

    The same shape; NaN before a seed's first value.
    """
    points = np.arange(len(values))[:, None]
    known = np.maximum.accumulate(np.where(np.isnan(values), 0, points), axis=0)
    return np.take_along_axis(values, known, axis=0)


def spread(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean over seeds, and what is to be shown of how far they lie apart.

    **Arguments:**

    - `values`: shape `[points, seeds]`; NaN where a seed has no value.

    **Returns:**

    `(mean, low, high)`, each `[points]`: of three seeds or more the 95 % confidence interval of the
    mean; of two the seeds themselves, because their interval is as wide as 18 standard deviations;
    of one NaN.
    """
    mean, half = confidence_band(values)
    pair = np.count_nonzero(~np.isnan(values), axis=1) == 2
    least = np.where(np.isnan(values), np.inf, values).min(axis=1)
    most = np.where(np.isnan(values), -np.inf, values).max(axis=1)
    return mean, np.where(pair, least, mean - half), np.where(pair, most, mean + half)


def apart(low: float, high: float) -> tuple[float, float]:
    """Return a range to draw in: the two ends, widened where no more than rounding parts them."""
    if high - low > max(1e-9 * max(abs(low), abs(high)), 1e-300):
        return low, high
    margin = max(0.5, 1e-6 * abs(low))
    return low - margin, high + margin
