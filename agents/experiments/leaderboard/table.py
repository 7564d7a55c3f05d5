"""The results of the leaderboard, as they are kept: scores, curves, and what they cost."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from agents.experiments.results import RESULTS, Row, read_rows, write_rows
from agents.running.files import naming
from agents.running.scalars import read_scalars

KEPT = Path(__file__).parent / "data"
"""The folder of the results that come with the library."""
POINTS = 40
_CURVES, _COSTS = "curves.csv", "costs.csv"


@dataclass(frozen=True)
class Curve:
    """The learning curve of one seed.

    **Attributes:**

    - `values`: means of the return over equal parts of the training, NaN where no episode ended.
    """

    environment: str
    variant: str
    seed: int
    values: tuple[float, ...]


@dataclass(frozen=True)
class Table:
    """What is known of the board.

    **Attributes:**

    - `rows`: a row for each seed.
    - `curves`: a curve for each.
    - `seconds`: of processor time, by task and memory, for all seeds together.
    """

    rows: tuple[Row, ...] = ()
    curves: tuple[Curve, ...] = ()
    seconds: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def has(self, environment: str, variant: str) -> bool:
        """Tell whether a memory has been run on a task."""
        return any((r.environment, r.variant) == (environment, variant) for r in self.rows)

    def with_run(self, rows: Iterable[Row], folder: Path, metric: str, seconds: float) -> "Table":
        """Add a run, whose curves are read from its folder."""
        rows = tuple(rows)
        _, values = read_scalars(folder).curve(metric)
        curves = tuple(
            Curve(row.environment, row.variant, row.seed, thinned(values[:, row.seed]))
            for row in rows
        )
        place = rows[0].environment, rows[0].variant
        return Table(self.rows + rows, self.curves + curves, {**self.seconds, place: seconds})


def thinned(curve: np.ndarray) -> tuple[float, ...]:
    """Average a curve over equal parts, at most `POINTS`; NaN where a part has no value."""
    parts = np.array_split(curve, min(POINTS, len(curve)))
    return tuple(float(np.nanmean(p)) if (~np.isnan(p)).any() else float("nan") for p in parts)


def read_table(folder: Path = KEPT) -> Table:
    """Read a table; an empty one where there is none.

    **Arguments:**

    - `folder`: where it was written; by default the results that come with the library.
    """
    if not (folder / RESULTS).exists():
        return Table()
    with (folder / _CURVES).open(newline="") as file:
        curves = tuple(
            Curve(e, v, int(seed), tuple(map(float, values.split())))
            for e, v, seed, values in list(csv.reader(file))[1:]
        )
    with (folder / _COSTS).open(newline="") as file:
        seconds = {(e, v): float(s) for e, v, s in list(csv.reader(file))[1:]}
    return Table(tuple(read_rows(folder / RESULTS)), curves, seconds)


def write_table(folder: Path, table: Table) -> None:
    """Write a table as three files; the same bytes for the same numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / RESULTS, table.rows)
    curves = [
        (c.environment, c.variant, c.seed, " ".join(f"{x:.4g}" for x in c.values))
        for c in table.curves
    ]
    costs = [(*place, f"{seconds:.0f}") for place, seconds in table.seconds.items()]
    for name, last, lines in ((_CURVES, ["seed", "curve"], curves), (_COSTS, ["seconds"], costs)):
        with naming(folder / name), (folder / name).open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["environment", "variant", *last])
            writer.writerows(lines)
