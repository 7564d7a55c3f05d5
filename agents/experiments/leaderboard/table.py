"""The results of the leaderboard, as they are kept: scores, curves, and what they cost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from agents.experiments.results import (
    RESULTS,
    Row,
    read_csv,
    read_rows,
    write_csv,
    write_rows,
)
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
    - `seconds`: of processor time, by task and memory, for all seeds together; NaN for a run that
      was stopped and went on.
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
        place = _place(rows[0])
        return Table(self.rows + rows, self.curves + curves, {**self.seconds, place: seconds})

    def joined(self, other: "Table") -> "Table":
        """Add the runs of another table that this one lacks."""
        new = {_place(r) for r in other.rows if not self.has(*_place(r))}
        rows = tuple(row for row in other.rows if _place(row) in new)
        curves = tuple(curve for curve in other.curves if _place(curve) in new)
        seconds = {place: other.seconds[place] for place in new}
        return Table(self.rows + rows, self.curves + curves, {**self.seconds, **seconds})


def _place(line: Row | Curve) -> tuple[str, str]:
    return line.environment, line.variant


def thinned(curve: np.ndarray) -> tuple[float, ...]:
    """Average a curve over equal parts, at most `POINTS`; NaN where a part has no value."""
    parts = np.array_split(curve, min(POINTS, len(curve)))
    return tuple(float(np.nanmean(p)) if (~np.isnan(p)).any() else float("nan") for p in parts)


def read_table(folder: Path = KEPT) -> Table:
    """Read a table; an empty one where there is none.

    **Arguments:**

    - `folder`: where it was written; by default the results that come with the library.

    **Raises:**

    `ValueError` for a file that is damaged, or has not what belongs to a row of the results, and
    for a seed that the results have twice or leave out.
    """
    if not (folder / RESULTS).exists():
        return Table()
    rows = read_rows(folder / RESULTS)
    seeds: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        seeds.setdefault(_place(row), []).append(row.seed)
    for (environment, variant), found in seeds.items():
        if sorted(found) != list(range(len(found))):
            raise ValueError(
                f"{folder / RESULTS} must have seeds from 0 on, each once, of {variant} on "
                f"{environment}, not {', '.join(map(str, found))}"
            )
    curves = {line[:3]: Curve(*line) for line in map(tuple, read_csv(folder / _CURVES, _OF_CURVE))}
    seconds = {(e, v): s for e, v, s in read_csv(folder / _COSTS, _OF_COST)}
    for row in rows:
        place = _place(row)
        for name, known in ((_CURVES, (*place, row.seed) in curves), (_COSTS, place in seconds)):
            if not known:
                raise ValueError(
                    f"{folder / name} has no line for {row.variant} on {row.environment}, seed "
                    f"{row.seed}, which {RESULTS} has"
                )
    return Table(
        tuple(rows), tuple(curves[r.environment, r.variant, r.seed] for r in rows), seconds
    )


def write_table(folder: Path, table: Table) -> None:
    """Write a table as three files; the same bytes for the same numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    curves = (
        (c.environment, c.variant, c.seed, " ".join(f"{x:.4g}" for x in c.values))
        for c in table.curves
    )
    costs = ((*place, f"{seconds:.0f}") for place, seconds in table.seconds.items())
    write_csv(folder / _CURVES, _OF_CURVE, curves)
    write_csv(folder / _COSTS, _OF_COST, costs)
    # Last, so that nothing lacks of a row that it has.
    write_rows(folder / RESULTS, table.rows)


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split(" ")))


_OF_CURVE = {"environment": str, "variant": str, "seed": int, "curve": _numbers}
_OF_COST = {"environment": str, "variant": str, "seconds": float}
