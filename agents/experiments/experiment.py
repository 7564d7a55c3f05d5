"""An experiment as data: what is compared, on what, how long, and what is claimed of it."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agents.agent import AbstractAgent
from agents.algorithms import agent_class
from agents.experiments.claims import AbstractClaim

Settings = Mapping[str, Any]
Measure = Literal["final", "best", "area"]


@dataclass(frozen=True)
class Scale:
    """How long an experiment runs.

    **Attributes:**

    - `steps`: environment steps of each seed.
    - `seeds`: seeds of every variant that are reported.
    - `tuning_seeds`: others, by which settings are chosen where an experiment tunes any.
    """

    steps: int
    seeds: int
    tuning_seeds: int = 2


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Every variant of an agent in every environment, with several seeds.

    The settings of a run are those of `base`, of the environment and of the variant, the later ones
    first. Where `tune` names settings, every variant is first trained with each of their values, on
    seeds of their own; the best in `measure`, averaged over environments, is then trained anew.
    """

    name: str
    """As on the command line."""
    question: str
    """What is compared, in one sentence."""
    source: str
    """The paper and its figure or table, or that it is ours."""
    algorithm: str
    """The agent's name, such as `"ppo"`."""
    base: Settings = field(default_factory=dict)
    """Settings of all runs."""
    environments: Mapping[str, Settings]
    """By label, the settings that make an environment."""
    variants: Mapping[str, Settings]
    """By label, the settings that are compared."""
    tune: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Values to try of settings."""
    scales: Mapping[str, Scale]
    """By name; `"small"` is what two cores finish."""
    claims: tuple[AbstractClaim, ...]
    """What is judged, in this order."""
    measure: Measure = "final"
    """What scores are: the last tenth of the curve, its best point, or the mean of all points."""
    metric: str = "return"
    """The metric of the curve."""
    falls: bool = False
    """Whether less of the metric is better, so that scores are its negative."""
    differs: str = ""
    """What differs from the source."""

    def __post_init__(self):
        for claim in self.claims:
            known = (claim.variants, self.variants), (claim.environments, self.environments)
            for labels, existing in known:
                for label in labels:
                    if label not in existing:
                        raise ValueError(
                            f"`claims` of {self.name!r} name {label!r}, which must be one of "
                            f"{', '.join(existing)}."
                        )
        if not {"quick", "small"} <= set(self.scales):
            raise ValueError(
                f"`scales` (={sorted(self.scales)}) of {self.name!r} must have quick and small."
            )

    def agent(self, environment: str, variant: str, tuned: Settings) -> AbstractAgent:
        """Return the agent of one run."""
        merged = {**self.base, **self.environments[environment], **self.variants[variant], **tuned}
        return agent_class(self.algorithm)(**merged)

    def candidates(self) -> Iterator[dict[str, Any]]:
        """Return every combination of the settings that are tuned; one that is empty without."""
        for values in itertools.product(*self.tune.values()):
            yield dict(zip(self.tune, values, strict=True))
