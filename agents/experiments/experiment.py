"""An experiment as data: what is compared, on what, how long, and what is claimed of it."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agents.acting import Policy
from agents.agent import AbstractAgent
from agents.algorithms import agent_class
from agents.experiments.claims import AbstractClaim
from agents.running.folder import folder_name
from agents.settings import check_names
from zoo.annotations import Count, fit_fields, fitted

Settings = Mapping[str, Any]
Measure = Literal["final", "best", "area"]
Kind = Literal["training", "cost"]
Probe = Callable[[AbstractAgent, Policy], float]
COSTS = ("microseconds per step", "megabytes")


@dataclass(frozen=True)
class Scale:
    """How long an experiment runs.

    **Attributes:**

    - `steps`: environment steps of each seed, or of each measurement.
    - `seeds`: seeds of every variant that are reported, or measurements.
    - `tuning_seeds`: others, by which settings are chosen where an experiment tunes any.

    **Raises:**

    `TypeError` or `ValueError` for one that is not a whole number of at least 1.
    """

    steps: Count
    seeds: Count
    tuning_seeds: Count = 2

    def __post_init__(self):
        fit_fields(self)


@dataclass(frozen=True)
class Lines:
    """A figure of scores over a number that variants differ in.

    **Attributes:**

    - `axis`: what that number is.
    - `of`: by a line's label, the variant at each number; one that does not depend on it stands at
      several.
    - `log`: whether scores are on a logarithmic axis too.
    """

    axis: str
    of: Mapping[str, Mapping[int, str]]
    log: bool = False


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Every variant of an agent in every environment, with several seeds.

    The settings of a run are those of `base`, of the environment and of the variant, the later ones
    first. Where `tune` names settings, every variant is first trained with each of their values, on
    seeds of their own; the best in `measure`, averaged over environments, is then trained anew.

    **Raises:**

    `TypeError` or `ValueError` for a field that is not of its kind, or names what there is not.
    """

    name: str
    """As on the command line."""
    question: str
    """What is compared, in one sentence."""
    source: str
    """The paper and its figure or table, or that it is ours."""
    kind: Kind = "training"
    """Whether variants are trained, or what their iterations cost is measured."""
    algorithm: str
    """The agent's name, such as `"ppo"`; `algorithm` among the settings of a variant goes first."""
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
    """The metric of the curve; of costs `"microseconds per step"` or `"megabytes"`."""
    probe: Probe | None = None
    """What the policy of each seed is asked after training; its answer, which `metric` names, is
    the score in place of the curve's."""
    falls: bool = False
    """Whether less of the metric is better, so that scores are its negative."""
    lines: Lines | None = None
    """What the figure shows over which axis; by default a row for each variant."""
    differs: str = ""
    """What differs from the source."""

    def __post_init__(self):
        fit_fields(self)
        for name in ("environments", "variants"):
            self._check_labels(name, getattr(self, name))
        for name, scale in self.scales.items():
            fitted("scales", name, str, of=self.name)
            fitted(f"scales[{name!r}]", scale, Scale, of=self.name)
        for name, values in self.tune.items():
            fitted("tune", name, str, of=self.name)
            if not fitted("tune", values, Sequence, of=name):
                raise ValueError(f"`tune` of {self.name!r} has no value for {name!r}.")
        for claim in self.claims:
            self._check_known("claims", claim.variants, self.variants)
            self._check_known("claims", claim.environments, self.environments)
        for line in self.lines.of.values() if self.lines else ():
            self._check_known("lines", line.values(), self.variants)
        if self.kind == "cost" and (self.metric not in COSTS or self.tune or self.probe):
            raise ValueError(
                f"`metric` (={self.metric!r}) of {self.name!r} must be one of {', '.join(COSTS)}, "
                "and nothing tuned or probed, where costs are measured."
            )
        if not {"quick", "small"} <= set(self.scales):
            raise ValueError(
                f"`scales` (={sorted(self.scales)}) of {self.name!r} must have quick and small."
            )

    def _check_labels(self, field: str, labels: Mapping[str, Settings]) -> None:
        if not labels:
            raise ValueError(f"`{field}` of {self.name!r} must have one at least.")
        folders: dict[str, str] = {}
        for label, settings in labels.items():
            fitted(field, label, str, of=self.name)
            fitted(f"{field}[{label!r}]", settings, Mapping, of=self.name)
            if not folder_name(label).strip("."):
                raise ValueError(
                    f"`{field}` of {self.name!r} have {label!r}, which no folder can be called."
                )
            other = folders.setdefault(folder_name(label), label)
            if other != label:
                raise ValueError(
                    f"`{field}` of {self.name!r} have {other!r} and {label!r}, whose runs would be "
                    f"in one folder, {folder_name(label)}."
                )

    def _check_known(self, field: str, labels: Iterable[str], known: Iterable[str]) -> None:
        for label in labels:
            if label not in known:
                raise ValueError(
                    f"`{field}` of {self.name!r} name {label!r}, which must be one of "
                    f"{', '.join(known)}."
                )

    def agent(self, environment: str, variant: str, tuned: Settings) -> AbstractAgent:
        """Return the agent of one run.

        **Raises:**

        `ValueError` for a setting that the agent does not have, and what the agent raises.
        """
        merged = {**self.base, **self.environments[environment], **self.variants[variant], **tuned}
        kind = agent_class(merged.pop("algorithm", self.algorithm))
        check_names(kind, merged, of=variant)
        return kind(**merged)

    def candidates(self) -> Iterator[dict[str, Any]]:
        """Return every combination of the settings that are tuned; one that is empty without."""
        for values in itertools.product(*self.tune.values()):
            yield dict(zip(self.tune, values, strict=True))
