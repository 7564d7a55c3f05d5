"""One number for many runs, with an interval: what to report of several tasks and few seeds.

Scores have the shape `[runs, tasks]`: a row for each seed, a column for each task. `ValueError`
says where there are none, or they are not numbers.

Source: Agarwal et al. (2021), *Deep Reinforcement Learning at the Edge of the Statistical
Precipice*, sections 4.1 to 4.3, written from its definitions.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from agents.running.statistics import CONFIDENCE
from zoo.annotations import Count, Fraction, Seed, checked, fitted
from zoo.parts.checks import shown

Aggregate = Callable[..., Any]


def mean(scores: np.ndarray) -> float:
    """Return the mean over runs and tasks."""
    return float(np.mean(_numbers(scores)))


def median(scores: np.ndarray) -> float:
    """Return the median over tasks of the mean over runs."""
    return float(np.median(np.mean(_table(scores), axis=0)))


def iqm(scores: np.ndarray) -> float:
    """Return the interquartile mean: of all runs of all tasks, that of the middle half.

    A quarter of the runs is left out at each end, rounded down to whole runs. NaN where one is.
    """
    ordered = np.sort(np.ravel(_numbers(scores)))
    if np.isnan(ordered).any():  # sorted, it would be the best
        return float("nan")
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


OF_SEEDS: dict[str, Callable[[np.ndarray], Any]] = {
    "mean": np.mean,
    "median": np.median,
    "iqm": iqm,
}
"""Statistics of the seeds of one task, by name: their median is not that of tasks."""


def optimality_gap(scores: np.ndarray, best: float = 1.0) -> float:
    """Return by how much runs fall short of `best`, on average; what is above counts as `best`.

    **Raises:**

    `TypeError` or `ValueError` for a `best` that is not a finite number.
    """
    best = fitted("best", best, float)
    return float(np.mean(best - np.minimum(_numbers(scores), best)))


def probability_of_improvement(scores: np.ndarray, than: np.ndarray) -> float:
    """Return how probable it is that a run is better than one of the others on the same task.

    Averaged over tasks; equal scores count half. NaN where a score is.

    **Arguments:**

    - `scores`, `than`: of the same tasks; the numbers of runs may differ.

    **Raises:**

    `ValueError` for another number of tasks.
    """
    one, other = _table(scores), _table(than, "than")
    if one.shape[1:] != other.shape[1:]:
        raise ValueError(
            f"`scores` (shape {one.shape}) and `than` (shape {other.shape}) must be of the same "
            "tasks."
        )
    if np.isnan(one).any() or np.isnan(other).any():
        return float("nan")
    one = one[:, None]
    return float(np.mean((one > other) + 0.5 * (one == other)))


def performance_profile(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return for each threshold the share of runs, over all tasks, that are above it.

    NaN where a score is.
    """
    found, thresholds = np.ravel(_numbers(scores)), _numbers(thresholds, "thresholds")
    if np.isnan(found).any():
        return np.full(thresholds.shape, np.nan)
    return np.mean(found[:, None] > thresholds[None], axis=0)


def _numbers(scores: Any, name: str = "scores") -> np.ndarray:
    try:
        found = np.asarray(scores, float)
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` (={shown(scores)}) must be an array of numbers.") from None
    if not found.size:
        raise ValueError(f"`{name}` (shape {found.shape}) must be at least one number.")
    return found


def _table(scores: Any, name: str = "scores") -> np.ndarray:
    found = _numbers(scores, name)
    if found.ndim != 2:
        raise ValueError(f"`{name}` (shape {found.shape}) must be [runs, tasks].")
    return found


@checked
def bootstrap(
    aggregate: Aggregate,
    *scores: np.ndarray,
    samples: Count = 2000,
    confidence: Fraction = CONFIDENCE,
    seed: Seed = 0,
    vectorized: bool = False,
) -> tuple[Any, Any, Any]:
    """Compute an aggregate with its stratified bootstrap interval.

    Runs are drawn anew, with replacement, for each task apart. The interval lies between the
    percentiles of what the aggregate is then.

    **Arguments:**

    - `aggregate`: a function of the scores, such as `iqm` or `probability_of_improvement`; of
      several numbers, such as those of `performance_profile`, each has an interval of its own.
    - `scores`: one array for each of its arguments, `[runs, tasks]`.
    - `samples`: how often runs are drawn.
    - `confidence`: the share of samples inside the interval.
    - `seed`: of the drawing, so that the same scores have the same interval.
    - `vectorized`: whether `aggregate` is of the last two axes and takes any number in front of
      them, as `np.mean(scores, axis=(-2, -1))`: all samples are then one call.

    **Returns:**

    `(value, low, high)`: numbers, or arrays where the aggregate is one.

    **Raises:**

    `ValueError` for scores that are not `[runs, tasks]`, or not all finite, and where there are
    none; `TypeError` for an `aggregate` that returns no numbers, `ValueError` for one that is not
    vectorized and said to be; `TypeError` or `ValueError` for
    another argument that breaks its rule.
    """
    if not scores:
        raise ValueError("`scores` must be given: one array for each argument of `aggregate`.")
    arrays = [_table(x) for x in scores]
    for x in arrays:
        if not np.isfinite(x).all():
            bad = np.count_nonzero(~np.isfinite(x))
            raise ValueError(f"`scores` must be finite, which {bad} of {x.size} are not")
    value = aggregate(*arrays)
    if np.asarray(value).dtype.kind not in "biuf":
        raise TypeError(f"`aggregate` must return numbers, not {shown(value)}.")
    # All of them in one call, which takes a third of the time of a call for each sample.
    runs = np.concatenate([np.full(x.size, len(x)) for x in arrays])
    rows = np.random.default_rng(seed).integers(runs, size=(samples, len(runs)))
    borders = np.cumsum([x.size for x in arrays])[:-1]
    drawn = [
        np.take_along_axis(x[None], part.reshape(samples, *x.shape), axis=1)
        for x, part in zip(arrays, np.split(rows, borders, axis=1), strict=True)
    ]
    if vectorized:
        values = aggregate(*drawn)
        if np.shape(values)[:1] != (samples,):
            raise ValueError(
                f"`aggregate` must return a value for each of {samples} samples where it is "
                f"`vectorized`, not shape {np.shape(values)}."
            )
    else:
        values = [aggregate(*sample) for sample in zip(*drawn, strict=True)]
    tail = 50 * (1 - confidence)
    ends = np.percentile(values, [tail, 100 - tail], axis=0)
    low, high = ends.tolist() if ends.ndim == 1 else ends
    return value, low, high
