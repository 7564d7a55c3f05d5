"""The scalars of a run in a CSV file: written, read again, and mended.

The file holds nothing that depends on the clock, so that an interrupted and resumed run leaves the
same bytes as one that ran through. Speed goes to TensorBoard and the terminal.
"""

import contextlib
import csv
import errno
import io
import itertools
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents.running.files import naming, write_whole
from agents.running.statistics import last_known

SCALARS = "scalars.csv"
INDEX = ("iteration", "env_steps", "seed")

Row = dict[str, str]


class ScalarsError(ValueError):
    """Scalars that are damaged, or of which rows are missing; the message says where."""


class ScalarLog:
    """Scalars in a CSV file: one row for each seed of an iteration, flushed as written.

    Cells of metrics that were not measured in an iteration are blank; a metric that was measured
    and is not a number is `nan`. A metric not seen before adds a column.

    **Arguments:**

    - `path`: the file. Of what it holds, the rows of `keep` stay; later rows are dropped.
    - `metrics`: the columns known from the start.
    - `keep`: the iterations whose rows are kept; none to start afresh.
    - `seeds`: the number of rows for each iteration.
    - `blank`: environment steps of an iteration, to put blank rows in the place of those that are
        missing or damaged; without it they are an error. The damaged file is kept under another
        name.

    **Raises:**

    `ScalarsError` if rows of `keep` are missing, or the file is damaged; `ValueError` for a name of
    a metric that cannot stand in the file.
    """

    def __init__(
        self,
        path: Path,
        metrics: Sequence[str],
        *,
        seeds: int,
        keep: Sequence[int] = (),
        blank: int | None = None,
    ):
        self._path = path
        _check_names(metrics)
        places = list(itertools.product(keep, range(seeds)))
        if blank is None:
            rows = read_rows(path, len(places))
            if [_place(row) for row in rows] != places:
                sound = len(set(places) & set(map(_place, rows)))
                raise ScalarsError(
                    f"{path} lacks rows of the run that is resumed: {sound} rows up to "
                    f"iteration {keep[-1]}, there should be {len(places)}. With `drop_scalars` "
                    "they stay blank."
                )
        else:
            rows = _mended(path, places, blank)
        old = [name for name in (rows[0] if rows else ()) if name not in INDEX]
        self._columns = [*INDEX, *old, *(name for name in metrics if name not in old)]
        self._rewrite(rows)

    def write(self, iteration: int, env_steps: int, metrics: Mapping[str, np.ndarray]) -> None:
        """Append the rows of one iteration, from arrays over seeds by metric."""
        new = [name for name in metrics if name not in self._columns]
        if new:
            _check_names(new)
            self._file.close()
            rows = read_rows(self._path)
            self._columns += new
            self._rewrite(rows)
        with naming(self._path):
            for seed, values in enumerate(zip(*metrics.values(), strict=True)):
                index = dict(zip(INDEX, (iteration, env_steps, seed), strict=True))
                cells = {name: _cell(x) for name, x in zip(metrics, values, strict=True)}
                self._writer.writerow(index | cells)
            self._file.flush()

    def sync(self) -> None:
        """Put what was written on the disk; to be called before a checkpoint.

        **Raises:**

        `FileNotFoundError` if the file was removed or replaced: its rows would be lost.
        """
        with naming(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())
            if not os.path.samestat(self._path.stat(), os.fstat(self._file.fileno())):
                raise FileNotFoundError(errno.ENOENT, "it was replaced while it was written")

    def close(self) -> None:
        """Close the file."""
        with naming(self._path):
            self._file.close()

    def _rewrite(self, rows: Sequence[Row]) -> None:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self._columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_whole(self._path, text.getvalue().encode())
        self._file = self._path.open("a", newline="")
        self._writer = csv.DictWriter(self._file, self._columns, restval="", lineterminator="\n")


def _check_names(metrics: Sequence[str]) -> None:
    for name in metrics:
        if not name or set(name) & set(',"') or not name.isprintable():
            raise ValueError(
                f"`metrics` (={name!r}): a name must be without commas and quotes, and printable."
            )


def _cell(value: np.generic) -> str:
    # The shortest text that reads back to the same value in the metric's own dtype.
    return str(np.asarray(value)[()])


def read_rows(path: Path, count: int | None = None) -> list[Row]:
    """Read the cells by column for each row of a CSV file; nothing where there is no file.

    A last line that a crash has torn is left out.

    **Arguments:**

    - `count`: rows to read at most, from the first; all by default.

    **Raises:**

    `ScalarsError` with the line that is damaged, and how.
    """
    columns, lines = _lines(path)
    rows = []
    for number, line in enumerate(lines[:count], 2):
        try:
            rows.append(_parsed(columns, line))
        except ValueError as error:
            raise ScalarsError(f"{path} is damaged in line {number}: {error}.") from None
    return rows


def is_due(iteration: int, config: Mapping[str, Any]) -> bool:
    """Tell whether a run's configuration has an iteration logged, wherever the run ends."""
    rhythm = config["log_every"], config["evaluate_every"]
    return any(every and iteration % every == 0 for every in rhythm)


def check_whole(folder: Path, config: Mapping[str, Any], iterations: int) -> None:
    """Check that scalars have rows of all iterations that a run has done and logged.

    **Arguments:**

    - `config`: of the run.
    - `iterations`: those done.

    **Raises:**

    `ScalarsError` if they are damaged, or rows are missing; `ValueError` if there are none.
    """
    there = set(read_scalars(folder).iteration.tolist())
    missing = [i for i in range(1, iterations + 1) if is_due(i, config) and i not in there]
    if missing:
        raise ScalarsError(
            f"{folder / SCALARS} lacks rows of {len(missing)} iterations that the run has done, "
            f"the first of them {missing[0]}; without the folder it is trained anew."
        )


def has_row(path: Path, iteration: int) -> bool:
    """Tell whether a CSV file has a row of an iteration, in whatever state it is."""
    return any(line.partition(",")[0] == str(iteration) for line in _lines(path)[1])


def _lines(path: Path) -> tuple[list[str], list[str]]:
    """The columns, and the lines of the rows."""
    if not path.exists():
        return [], []
    try:
        # What is no text becomes characters that are in no number.
        lines = path.read_text("utf-8", "replace").split("\n")[:-1]
    except OSError as error:
        raise ScalarsError(f"{path} cannot be read: {error.strerror}.") from None
    return (lines[0].split(","), lines[1:]) if lines else ([], [])


def _parsed(columns: list[str], line: str) -> Row:
    if tuple(columns[:3]) != INDEX or len(set(columns)) < len(columns):
        raise ValueError(f"its columns do not begin with {', '.join(INDEX)}")
    if not all(map(str.isprintable, columns)):
        raise ValueError("its columns have names that cannot be printed")
    cells = line.split(",")
    if len(cells) != len(columns):
        raise ValueError(f"it has {len(cells)} cells in {len(columns)} columns")
    for place, (name, cell) in enumerate(zip(columns, cells, strict=True)):
        try:
            number = int(cell) if place < len(INDEX) else float(cell or "nan")
        except ValueError:
            raise ValueError(f"{name!r} (={cell[:40]!r}) is no number") from None
        if place < len(INDEX) and not 0 <= number < 2**63:
            raise ValueError(f"{name!r} (={cell[:40]!r}) must be in 0 … {2**63 - 1}")
    return dict(zip(columns, cells, strict=True))


def _place(row: Row) -> tuple[int, int]:
    return int(row["iteration"]), int(row["seed"])


def _mended(path: Path, places: Sequence[tuple[int, int]], steps: int) -> list[Row]:
    """The rows of some iterations and seeds, blank where they are missing or damaged."""
    columns, lines = _lines(path)
    found = {}
    for line in lines:
        with contextlib.suppress(ValueError):
            row = _parsed(columns, line)
            found.setdefault(_place(row), row)
    if not found.keys() >= set(places):
        numbers = itertools.count(1)
        kept = (path.with_name(f"{path.stem}.damaged-{n}{path.suffix}") for n in numbers)
        if path.exists():
            shutil.copyfile(path, next(copy for copy in kept if not copy.exists()))
    blank = dict.fromkeys(columns if tuple(columns[:3]) == INDEX else INDEX, "")

    def row_of(iteration: int, seed: int) -> Row:
        index = (iteration, iteration * steps, seed)
        return blank | {name: str(x) for name, x in zip(INDEX, index, strict=True)}

    return [found.get(place) or row_of(*place) for place in places]


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

    def has(self, metric: str) -> bool:
        """Tell whether there is a value of a metric that can be drawn, a finite one."""
        return metric in self.metrics and bool(np.isfinite(self.metrics[metric]).any())

    def curve(self, metric: str) -> tuple[np.ndarray, np.ndarray]:
        """Return environment steps `[points]` and values `[points, seeds]` of one metric.

        A value that is not finite, such as the last ones of a run that diverged, counts as none.
        Iterations in which no seed has a value are left out.

        **Raises:**

        `ValueError` if the run has no such metric or no finite value of it.
        """
        if metric not in self.metrics:
            known = ", ".join(self.metrics)
            raise ValueError(f"metric {metric!r} is not logged; there are: {known}")
        finite = np.isfinite(self.metrics[metric])
        measured = finite.any(axis=1)
        if not measured.any():
            raise ValueError(f"metric {metric!r} has no finite value in this run yet")
        values = np.where(finite, self.metrics[metric], np.nan)
        return self.env_steps[measured], values[measured]

    def last(self, metric: str) -> np.ndarray:
        """Return the last value that each seed has of a metric, `[seeds]`.

        **Raises:**

        `ValueError` if the run has no such metric or no finite value of it.
        """
        return last_known(self.curve(metric)[1])[-1]


def read_scalars(folder: str | Path) -> Scalars:
    """Read the scalars of a run's folder.

    The last iteration is left out where it has not the rows of all seeds yet.

    **Raises:**

    `ValueError` if there are none, `ScalarsError` if they are damaged: also where rows are missing
    before the last iteration, or iterations and steps do not rise.
    """
    path = Path(folder) / SCALARS
    if not path.exists():
        raise ValueError(f"{folder} holds no run: there is no {SCALARS} in it")
    rows = read_rows(path)
    names = [name for name in (rows[0] if rows else ()) if name not in INDEX]
    seeds = 1 + max((_place(row)[1] for row in rows), default=0)
    if seeds > max(1, len(rows)):
        raise ScalarsError(f"{path} is damaged: it names seed {seeds - 1} in {len(rows)} rows.")
    rows = rows[: len(rows) - len(rows) % seeds]
    index = np.array([[int(row[name]) for name in INDEX] for row in rows], np.int64)
    index = index.reshape(-1, seeds, len(INDEX))
    if (index[..., 2] != np.arange(seeds)).any() or (index[..., :2] != index[:, :1, :2]).any():
        raise ScalarsError(f"{path} is damaged: its rows do not name seed after seed.")
    iteration, env_steps = index[:, 0, 0], index[:, 0, 1]
    if (np.diff(iteration) <= 0).any() or (np.diff(env_steps) <= 0).any():
        raise ScalarsError(f"{path} is damaged: its iterations and steps do not rise.")
    metrics = {
        name: np.array([float(row[name] or "nan") for row in rows]).reshape(-1, seeds)
        for name in names
    }
    return Scalars(iteration, env_steps, metrics)


RETURNS = "evaluation_return", "return"
"""Metrics that show how well a run learns, the better one first."""


def default_metric(runs: Sequence[Scalars]) -> str:
    """Name the metric that shows how well runs learn.

    It is `"evaluation_return"` if all of them have evaluated, else `"return"`.
    """
    evaluated, trained = RETURNS
    return evaluated if all(run.has(evaluated) for run in runs) else trained
