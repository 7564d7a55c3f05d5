"""What came out of an experiment: a tidy table, and the verdicts that follow from it."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents.acting.contract import check_one
from agents.experiments.claims import AbstractClaim, Verdict
from agents.experiments.experiment import Experiment, Probe, Settings
from agents.running.files import write_whole
from agents.running.load import load_run, policy_of
from agents.running.scalars import read_scalars

RESULTS = "results.csv"
COLUMNS = {
    "environment": str,
    "variant": str,
    "settings": str,
    "seed": int,
    "steps": int,
    "final": float,
    "best": float,
    "area": float,
}


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
    diverged, and of a seed without a value of the metric, as where no episode ended.
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

    `TypeError` where a probe's answer is not one real number.
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


def told_lacking(rows: Sequence[Row], metric: str) -> str:
    """Say which seeds of a run have no value of the metric; an empty text where all have one."""
    lacking = [str(row.seed) for row in rows if np.isnan(row.final)]
    if not lacking:
        return ""
    return f"no value of {metric!r} of seed {', '.join(lacking)}, as where no episode ended"


def _words(tuned: Settings) -> str:
    return " ".join(f"{name}={value}" for name, value in tuned.items())


def _of_curve(experiment: Experiment, folder: Path) -> tuple[int, list[tuple]]:
    """The steps, and of each seed the end, the best and the mean of its curve."""
    scalars, none = read_scalars(folder), (np.nan,) * 3
    logged = scalars.metrics.get(experiment.metric)
    if logged is not None and not scalars.has(experiment.metric):
        return int(scalars.env_steps[-1]), [none] * logged.shape[1]
    steps, curves = scalars.curve(experiment.metric)
    measures = []
    for curve in curves.T:
        curve = curve[~np.isnan(curve)]
        if not len(curve):
            measures.append(none)
            continue
        tenth = -(-len(curve) // 10)
        best = curve.min() if experiment.falls else curve.max()
        measures.append((curve[-tenth:].mean(), best, curve.mean()))
    return int(steps[-1]), measures


def _answers(probe: Probe, folder: Path) -> tuple[int, list[tuple]]:
    """The steps, and what the policy of each seed answers, three times."""
    agent, state, config = load_run(folder)
    steps = int(state.iteration[0]) * agent.steps_per_iteration
    policies = [policy_of(agent, state, seed) for seed in range(config["seeds"])]
    answers = [probe(agent, policy) for policy in policies]
    for answer in answers:
        kinds = [np.bool_, np.integer, np.floating]
        check_one("probe(agent, policy)", answer, kinds, "one real number")
    return steps, [(float(answer),) * 3 for answer in answers]


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write the tidy table: a line for each seed, the same bytes for the same numbers."""
    cells = ([getattr(row, name) for name in COLUMNS] for row in rows)
    write_csv(
        path,
        COLUMNS,
        ([f"{x:.6g}" if isinstance(x, float) else x for x in line] for line in cells),
    )


def read_rows(path: str | Path) -> list[Row]:
    """Read the table again.

    **Raises:**

    `ValueError` for a file that is no such table.
    """
    return [Row(*line) for line in read_csv(path, COLUMNS)]


def write_csv(path: Path, columns: Iterable[str], lines: Iterable[Iterable[Any]]) -> None:
    """Write a table whole or not at all."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(lines)
    write_whole(path, text.getvalue().encode())


def read_csv(path: str | Path, columns: Mapping[str, Callable[[str], Any]]) -> list[list[Any]]:
    """Read the lines of a table again.

    **Arguments:**

    - `columns`: by name, what makes a cell of its text.

    **Raises:**

    `ValueError` for a file that has other columns, is cut off, or has a cell that is none.
    """
    content = Path(path).read_bytes()
    try:
        reader = csv.reader(io.StringIO(content.decode(), newline=""), strict=True)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text") from None
    if next(reader, []) != list(columns):
        raise ValueError(f"{path} must have the columns {', '.join(columns)}")
    try:
        lines = [
            [kind(cell) for kind, cell in zip(columns.values(), line, strict=True)]
            for line in reader
        ]
        if not content.endswith(b"\n"):
            raise ValueError("Its last line has no end.")
    except (ValueError, csv.Error):
        raise ValueError(f"{path} is damaged in line {reader.line_num}") from None
    return lines


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
