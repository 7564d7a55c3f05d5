"""Statements that an experiment can bear out, and how it is judged whether it does."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from agents.running.aggregates import Aggregate, bootstrap
from zoo.annotations import Positive, fit_fields

Outcome = Literal["reproduced", "not reproduced", "not settled"]
FEWEST = 3  # seeds: the bootstrap of two knows three means only
# Of each interval. With 2,000 four of our first 243 verdicts were the drawing's; four times as many
# change none.
_SAMPLES = 50_000
Scores = Mapping[str, np.ndarray]


class Verdict(NamedTuple):
    """What an experiment says of a claim.

    **Attributes:**

    - `outcome`: `"reproduced"` where the whole interval agrees with the claim, `"not reproduced"`
      where all of it contradicts, `"not settled"` otherwise, and with fewer than three seeds.
    - `value`, `low`, `high`: what the claim is about, with its 95 % interval; NaN where a variant
      in it diverged or ended no episode, which settles nothing.
    - `seeds`: the fewest seeds of a variant in it.
    """

    outcome: Outcome
    value: float
    low: float
    high: float
    seeds: int


@dataclass(frozen=True, kw_only=True)
class AbstractClaim:
    """A statement about scores, made before they are known.

    **Raises:**

    `TypeError` or `ValueError` for a field that breaks its annotation.
    """

    text: str
    """The statement in words, as the paper makes it."""
    environments: tuple[str, ...] = ()
    """Labels of the environments that it is about; all by default."""

    def __post_init__(self):
        fit_fields(self)

    @property
    @abstractmethod
    def variants(self) -> tuple[str, ...]:
        """Labels of the variants that it is about."""

    @abstractmethod
    def measure(self, scores: Scores) -> tuple[float, float, float]:
        """Return what the statement is about, with the ends of its interval."""

    @abstractmethod
    def holds(self, low: float, high: float) -> bool | None:
        """Whether it holds of all numbers between the ends, of none (`False`), or of some."""

    def judge(self, scores: Scores) -> Verdict:
        """Judge the statement.

        **Arguments:**

        - `scores`: of every variant, `[seeds, environments]`; more is better, NaN where there is
          none, as where training diverged.

        **Raises:**

        `ValueError` where a variant that it is about has no scores.
        """
        for variant in self.variants:
            if variant not in scores:
                listed = ", ".join(map(repr, scores)) or "none"
                raise ValueError(f"`scores` (of {listed}) must have those of {variant!r}.")
        seeds = min(len(scores[variant]) for variant in self.variants)
        if any(np.isnan(scores[variant]).any() for variant in self.variants):
            return Verdict("not settled", np.nan, np.nan, np.nan, seeds)
        value, low, high = self.measure(scores)
        held = self.holds(low, high) if seeds >= FEWEST else None
        outcomes: dict[bool | None, Outcome] = {True: "reproduced", False: "not reproduced"}
        return Verdict(outcomes.get(held, "not settled"), value, low, high, seeds)


@dataclass(frozen=True, kw_only=True)
class Better(AbstractClaim):
    """One variant is better than another, by more than a margin on average."""

    better: str
    than: str
    by: float = 0.0

    @property
    def variants(self) -> tuple[str, ...]:
        return self.better, self.than

    def measure(self, scores: Scores) -> tuple[float, float, float]:
        return _difference(scores[self.better], scores[self.than])

    def holds(self, low: float, high: float) -> bool | None:
        return _above(low, high, self.by)


@dataclass(frozen=True, kw_only=True)
class Alike(AbstractClaim):
    """Two variants differ by less than a margin on average, whichever is better."""

    one: str
    other: str
    within: Positive

    @property
    def variants(self) -> tuple[str, ...]:
        return self.one, self.other

    def measure(self, scores: Scores) -> tuple[float, float, float]:
        return _difference(scores[self.one], scores[self.other])

    def holds(self, low: float, high: float) -> bool | None:
        if max(abs(low), abs(high)) < self.within:
            return True
        return False if low >= self.within or high <= -self.within else None


@dataclass(frozen=True, kw_only=True)
class Reaches(AbstractClaim):
    """A variant's average is above a value."""

    variant: str
    value: float

    @property
    def variants(self) -> tuple[str, ...]:
        return (self.variant,)

    def measure(self, scores: Scores) -> tuple[float, float, float]:
        return _interval(_mean, scores[self.variant])

    def holds(self, low: float, high: float) -> bool | None:
        return _above(low, high, self.value)


@dataclass(frozen=True, kw_only=True)
class Ratio(AbstractClaim):
    """One variant's average over another's lies between two numbers."""

    one: str
    other: str
    above: float = 0.0
    below: float | None = None
    """No bound where it is `None`."""

    @property
    def variants(self) -> tuple[str, ...]:
        return self.one, self.other

    def measure(self, scores: Scores) -> tuple[float, float, float]:
        one, other = scores[self.one], scores[self.other]
        _, low, high = _interval(_mean, other)
        if low <= 0 <= high:  # over what may be nothing, a ratio can be anything
            return np.nan, np.nan, np.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            return _interval(lambda a, b: np.divide(_mean(a), _mean(b)), one, other)

    def holds(self, low: float, high: float) -> bool | None:
        below = np.inf if self.below is None else self.below
        if low > self.above and high < below:
            return True
        return False if high <= self.above or low >= below else None


def _difference(one: np.ndarray, other: np.ndarray) -> tuple[float, float, float]:
    return _interval(lambda a, b: _mean(a) - _mean(b), one, other)


def _mean(scores: np.ndarray) -> Any:
    return np.mean(scores, axis=(-2, -1))


def _interval(aggregate: Aggregate, *scores: np.ndarray) -> tuple[float, float, float]:
    value, low, high = bootstrap(aggregate, *scores, samples=_SAMPLES, vectorized=True)
    return float(value), low, high


def _above(low: float, high: float, margin: float) -> bool | None:
    return True if low > margin else (False if high <= margin else None)
