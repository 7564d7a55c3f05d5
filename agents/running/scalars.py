"""The scalars of a run: written to CSV and TensorBoard, and read again.

The CSV holds nothing that depends on the clock, so that an interrupted and resumed run leaves the
same bytes as one that ran through. Speed goes to TensorBoard and the terminal.
"""

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tensorboardX import SummaryWriter

from agents.running.files import write_whole

SCALARS = "scalars.csv"
INDEX = ("iteration", "env_steps", "seed")


class ScalarLog:
    """Scalars in a CSV file: one row for each iteration and seed, flushed as written.

    Cells of metrics that were not measured in an iteration are blank; a metric that was measured
    and is not a number is `nan`. A metric not seen before adds a column.

    **Arguments:**

    - `path`: the file. What it holds up to `keep` stays; later rows are dropped.
    - `metrics`: the columns known from the start.
    - `keep`: the last iteration whose rows are kept; 0 starts afresh.
    - `seeds`: the number of rows for each iteration.

    **Raises:**

    `ValueError` if rows up to `keep` are missing.
    """

    def __init__(self, path: Path, metrics: Sequence[str], *, seeds: int, keep: int = 0):
        self._path = path
        rows = [row for row in read_rows(path) if int(row["iteration"]) <= keep]
        if len(rows) != keep * seeds:
            raise ValueError(
                f"{path} lacks rows of the run that is resumed: {len(rows)} rows up to "
                f"iteration {keep}, there should be {keep * seeds}."
            )
        old = [name for name in (rows[0] if rows else ()) if name not in INDEX]
        self._columns = [*INDEX, *old, *(name for name in metrics if name not in old)]
        self._rewrite(rows)

    def write(self, iteration: int, env_steps: int, metrics: Mapping[str, np.ndarray]) -> None:
        """Append the rows of one iteration, from arrays over seeds by metric."""
        new = [name for name in metrics if name not in self._columns]
        if new:
            self._file.close()
            rows = read_rows(self._path)
            self._columns += new
            self._rewrite(rows)
        for seed, values in enumerate(zip(*metrics.values(), strict=True)):
            index = dict(zip(INDEX, (iteration, env_steps, seed), strict=True))
            cells = {name: _cell(x) for name, x in zip(metrics, values, strict=True)}
            self._writer.writerow(index | cells)
        self._file.flush()

    def sync(self) -> None:
        """Put what was written on the disk; to be called before a checkpoint."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _rewrite(self, rows: Sequence[Mapping[str, str]]) -> None:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self._columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_whole(self._path, text.getvalue().encode())
        self._file = self._path.open("a", newline="")
        self._writer = csv.DictWriter(self._file, self._columns, restval="", lineterminator="\n")


class TensorBoardLog:
    """Scalars to TensorBoard: one sub-run for each seed, and their mean.

    **Arguments:**

    - `folder`: where the event files go.
    - `seeds`: the number of seeds.
    - `purge`: environment steps from which on events already there are void (on resuming).
    """

    def __init__(self, folder: Path, *, seeds: int, purge: int | None = None):
        names = [f"seed_{seed}" for seed in range(seeds)]
        self._seeds = [SummaryWriter(str(folder / name), purge_step=purge) for name in names]
        self._mean = SummaryWriter(str(folder / "mean"), purge_step=purge)

    def write(self, env_steps: int, metrics: Mapping[str, np.ndarray], **shared: float) -> None:
        """Write the scalars of one iteration; those that are not numbers are left out.

        **Arguments:**

        - `env_steps`: environment steps so far, for each seed: the horizontal axis.
        - `metrics`: arrays over seeds.
        - `shared`: scalars of the run as a whole, such as its speed.
        """
        for name, values in metrics.items():
            for writer, value in zip(self._seeds, values, strict=True):
                if np.isfinite(value):
                    writer.add_scalar(name, float(value), env_steps)
            mean = mean_over_seeds(values)
            if np.isfinite(mean):
                self._mean.add_scalar(name, mean, env_steps)
        for name, value in shared.items():
            self._mean.add_scalar(name, value, env_steps)

    def close(self) -> None:
        """Flush and close the event files."""
        for writer in (*self._seeds, self._mean):
            writer.close()


def mean_over_seeds(values: np.ndarray) -> float:
    """Average over the seeds that have a value, which is not NaN; NaN where none has."""
    values = np.asarray(values, float)
    present = values[~np.isnan(values)]
    return float(present.mean()) if present.size else float("nan")


def _cell(value: np.generic) -> str:
    # The shortest text that reads back to the same value in the metric's own dtype.
    return str(np.asarray(value)[()])


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read the cells by column for each row of a CSV file; nothing where there is no file.

    A last line that a crash has torn is left out.
    """
    if not path.exists():
        return []
    lines = path.read_text().splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
    return list(csv.DictReader(lines))


@dataclass(frozen=True)
class Scalars:
    """The scalars of one run.

    **Attributes:**

    - `iteration`, `env_steps`: shape `[iterations]`, the latter for each seed.
    - `metrics`: by name, shape `[iterations, seeds]`; NaN where nothing was measured.
    """

    iteration: np.ndarray
    env_steps: np.ndarray
    metrics: Mapping[str, np.ndarray]

    def curve(self, metric: str) -> tuple[np.ndarray, np.ndarray]:
        """Return environment steps `[points]` and values `[points, seeds]` of one metric.

        Iterations in which no seed has a value are left out.

        **Raises:**

        `ValueError` if the run has no such metric or no value of it.
        """
        if metric not in self.metrics:
            known = ", ".join(self.metrics)
            raise ValueError(f"metric {metric!r} is not logged; there are: {known}")
        values = self.metrics[metric]
        measured = ~np.isnan(values).all(axis=1)
        if not measured.any():
            raise ValueError(f"metric {metric!r} has no value in this run yet")
        return self.env_steps[measured], values[measured]


def read_scalars(folder: str | Path) -> Scalars:
    """Read the scalars of a run's folder.

    An iteration of which some seeds' rows are missing is left out.

    **Raises:**

    `ValueError` if there are none.
    """
    path = Path(folder) / SCALARS
    if not path.exists():
        raise ValueError(f"{folder} holds no run: there is no {SCALARS} in it")
    rows = read_rows(path)
    names = [name for name in (rows[0] if rows else ()) if name not in INDEX]
    seeds = 1 + max((int(row["seed"]) for row in rows), default=0)
    rows = rows[: len(rows) - len(rows) % seeds]
    table = {
        name: np.array([float(row[name] or "nan") for row in rows]).reshape(-1, seeds)
        for name in (*INDEX, *names)
    }
    iteration, env_steps = (table[name][:, 0].astype(int) for name in INDEX[:2])
    return Scalars(iteration, env_steps, {name: table[name] for name in names})


def default_metric(runs: Sequence[Scalars]) -> str:
    """Name the metric that shows how well runs learn.

    It is `"evaluation_return"` if all of them have evaluated, else `"return"`.
    """
    name = "evaluation_return"
    evaluated = [name in run.metrics and not np.isnan(run.metrics[name]).all() for run in runs]
    return name if all(evaluated) else "return"
