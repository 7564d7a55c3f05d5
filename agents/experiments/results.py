"""What came out of an experiment: a tidy table, and the verdicts that follow from it."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agents.experiments.claims import AbstractClaim, Verdict
from agents.experiments.experiment import Experiment, Probe, Settings
from agents.running.files import naming
from agents.running.load import load_run, policy_of
from agents.running.scalars import read_scalars

RESULTS = "results.csv"
COLUMNS = ("environment", "variant", "settings", "seed", "steps", "final", "best", "area")


@dataclass(frozen=True)
class Row:
    """One seed of one variant in one environment.

    **Attributes:**

    - `settings`: those that were tuned, as text; empty where none were.
    - `steps`: environment steps.
    - `final`: the mean of the last tenth of the curve.
    - `best`: its best point, which looks the better the more points there are.
    - `area`: the mean of all points.

    Where an experiment has a probe, its answer stands for all three. Of costs, `seed` is the number
    of the measurement, and the three are what `cost_rows` says. All three are NaN where training
    diverged.
    """

    environment: str
    variant: str
    settings: str
    seed: int
    steps: int
    final: float
    best: float
    area: float


def rows_of(
    experiment: Experiment, environment: str, variant: str, tuned: Settings, folder: Path
) -> list[Row]:
    """Read the rows of a run from its folder.

    **Raises:**

    `ValueError` where a seed has no value of the experiment's metric.
    """
    if experiment.probe is None:
        steps, measures = _of_curve(experiment, folder)
    else:
        steps, measures = _answers(experiment.probe, folder)
    return [
        Row(environment, variant, _words(tuned), seed, steps, *map(float, numbers))
        for seed, numbers in enumerate(measures)
    ]


def diverged_rows(
    environment: str, variant: str, tuned: Settings, seeds: int, steps: int
) -> list[Row]:
    """Write down that training diverged: a row of NaN for each seed.

    **Arguments:**

    - `steps`: those of the last good checkpoint. All seeds end where one diverges.
    """
    none = (np.nan,) * 3
    return [Row(environment, variant, _words(tuned), seed, steps, *none) for seed in range(seeds)]


def _words(tuned: Settings) -> str:
    return " ".join(f"{name}={value}" for name, value in tuned.items())


def _of_curve(experiment: Experiment, folder: Path) -> tuple[int, list[tuple]]:
    """The steps, and of each seed the end, the best and the mean of its curve."""
    steps, curves = read_scalars(folder).curve(experiment.metric)
    measures = []
    for seed, curve in enumerate(curves.T):
        curve = curve[~np.isnan(curve)]
        if not len(curve):
            raise ValueError(f"seed {seed} in {folder} has no value of {experiment.metric!r}")
        tenth = -(-len(curve) // 10)
        best = curve.min() if experiment.falls else curve.max()
        measures.append((curve[-tenth:].mean(), best, curve.mean()))
    return int(steps[-1]), measures


def _answers(probe: Probe, folder: Path) -> tuple[int, list[tuple]]:
    """The steps, and what the policy of each seed answers, three times."""
    agent, state, config = load_run(folder)
    steps = int(state.iteration[0]) * agent.steps_per_iteration
    policies = [policy_of(agent, state, seed) for seed in range(config["seeds"])]
    return steps, [(probe(agent, policy),) * 3 for policy in policies]


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write the tidy table: a line for each seed, the same bytes for the same numbers."""
    with naming(path), path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            values = (getattr(row, name) for name in COLUMNS)
            writer.writerow([f"{x:.6g}" if isinstance(x, float) else x for x in values])


def read_rows(path: str | Path) -> list[Row]:
    """Read the table again.

    **Raises:**

    `ValueError` for a file that is no such table.
    """
    with Path(path).open(newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ValueError(f"{path} must have the columns {', '.join(COLUMNS)}")
        rows = []
        for line in reader:
            try:
                row = Row(
                    line["environment"],
                    line["variant"],
                    line["settings"],
                    int(line["seed"]),
                    int(line["steps"]),
                    *(float(line[name]) for name in COLUMNS[5:]),
                )
            except (TypeError, ValueError):  # a cell that is missing is None
                raise ValueError(f"{path} is damaged in line {reader.line_num}") from None
            rows.append(row)
        return rows


def scores(
    experiment: Experiment, rows: Sequence[Row], environments: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Return the scores of every variant, `[seeds, environments]`; more is better.

    **Arguments:**

    - `environments`: labels; all by default.
    """
    columns = list(environments or experiment.environments)
    sign = -1.0 if experiment.falls else 1.0

    def column(variant: str, environment: str) -> list[float]:
        return [
            sign * getattr(row, experiment.measure)
            for row in rows
            if (row.variant, row.environment) == (variant, environment)
        ]

    return {v: np.array([column(v, e) for e in columns]).T for v in experiment.variants}


def verdicts(experiment: Experiment, rows: Sequence[Row]) -> list[tuple[AbstractClaim, Verdict]]:
    """Judge every claim of an experiment by its table."""
    return [
        (claim, claim.judge(scores(experiment, rows, claim.environments)))
        for claim in experiment.claims
    ]
