"""What a run tells and hears: scalars to CSV and TensorBoard, the terminal, Ctrl-C.

The CSV holds nothing that depends on the clock, so that an interrupted and resumed run
leaves the same bytes as one that ran through. Speed goes to TensorBoard and the terminal.
"""

import csv
import io
import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from tensorboardX import SummaryWriter

from agents.checkpoint import write_whole

INDEX = ("iteration", "env_steps", "seed")


class ScalarLog:
    """Scalars in a CSV file: one row for each iteration and seed, flushed as written.

    Cells of metrics that were not measured in an iteration are blank; a metric that was
    measured and is not a number is `nan`. A metric not seen before adds a column.

    **Arguments:**

    - `path`: the file. What it holds up to `keep` stays; later rows are dropped.
    - `metrics`: the columns known from the start.
    - `keep`: the last iteration whose rows are kept; 0 starts afresh.
    - `seeds`: the number of rows for each iteration.

    **Raises:**

    - `ValueError`: if rows up to `keep` are missing.
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
        """Appends the rows of one iteration.

        **Arguments:**

        - `iteration`: counted from 1.
        - `env_steps`: environment steps so far, for each seed.
        - `metrics`: arrays of shape `(seeds,)`, all of one length.
        """
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
        """Puts what was written on the disk; to be called before a checkpoint."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file."""
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
        """Writes the scalars of one iteration; those that are not numbers are left out.

        **Arguments:**

        - `env_steps`: environment steps so far, for each seed: the horizontal axis.
        - `metrics`: arrays of shape `(seeds,)`.
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
        """Flushes and closes the event files."""
        for writer in (*self._seeds, self._mean):
            writer.close()


def mean_over_seeds(values: np.ndarray) -> float:
    """The mean over the seeds that have a value.

    **Arguments:**

    - `values`: array of shape `(seeds,)`; NaN where there is none.

    **Returns:**

    The mean; NaN if no seed has a value.
    """
    values = np.asarray(values, float)
    present = values[~np.isnan(values)]
    return float(present.mean()) if present.size else float("nan")


class ProgressReport:
    """Progress on the terminal: a bar on a terminal, else a line every tenth of the way.

    Use it as a context manager.

    **Arguments:**

    - `total`: the number of iterations.
    - `start`: how many of them are done already.
    - `steps`: environment steps of one iteration, over all seeds.
    - `show`: `True` chooses by the terminal, `False` shows nothing; `"bar"` and
        `"lines"` force one form.
    - `console`: where to print.
    """

    def __init__(
        self,
        total: int,
        *,
        start: int = 0,
        steps: int,
        show: bool | Literal["bar", "lines"] = True,
        console: Console | None = None,
    ):
        self._total, self._start, self._steps = total, start, steps
        self._console = console or Console(force_terminal=True if show == "bar" else None)
        bar = show == "bar" or (show is True and self._console.is_terminal)
        self._lines = show == "lines" or (show is True and not bar)
        self._return = float("nan")
        self._began = time.perf_counter()
        self._bar = _bar(self._console) if bar else None
        if self._bar is not None:
            self._task = self._bar.add_task(
                "train", total=total, completed=start, score="–", speed="–"
            )

    def __enter__(self) -> "ProgressReport":
        self._began = time.perf_counter()
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, iteration: int, score: float) -> float:
        """Reports an iteration.

        **Arguments:**

        - `iteration`: how many are done.
        - `score`: its mean return; if NaN, the last one that was not is shown.

        **Returns:**

        Environment steps per second so far, over all seeds.
        """
        elapsed = max(time.perf_counter() - self._began, 1e-9)
        done = iteration - self._start
        speed = done * self._steps / elapsed
        self._return = self._return if np.isnan(score) else score
        score_text, speed_text = f"{self._return:.3f}", f"{speed:,.0f}"
        if self._bar is not None:
            self._bar.update(self._task, completed=iteration, score=score_text, speed=speed_text)
        tenth, before = (10 * i // self._total for i in (iteration, iteration - 1))
        if self._lines and (tenth > before or done == 1):
            left = elapsed / done * (self._total - iteration)
            self._console.print(
                f"{100 * iteration // self._total:3d} %  iteration {iteration}/{self._total}"
                f"  return {score_text}  {speed_text} steps/s  {_clock(left)} left",
                highlight=False,
            )
        return speed


class TrainingInterrupted(KeyboardInterrupt):
    """Training was asked to stop, and has written a checkpoint before it did.

    **Arguments:**

    - `message`: where it stopped and how to go on.
    - `number`: the signal that asked for it.
    """

    def __init__(self, message: str, number: int):
        super().__init__(message)
        self.number = number


class StopRequest:
    """Turns the first Ctrl-C or SIGTERM into a request; the second stops at once.

    Use it as a context manager. `number` is the signal that came, or `None`. Outside the main
    thread, which signals do not reach, it does nothing.
    """

    def __init__(self):
        self.number: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _: Any) -> None:
        if self.number is not None:
            raise KeyboardInterrupt
        self.number = number


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.percentage:3.0f} %"),
        BarColumn(bar_width=None),
        TextColumn("{task.completed}/{task.total}"),
        TextColumn("return {task.fields[score]}"),
        TextColumn("{task.fields[speed]} steps/s"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        expand=True,
    )


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


def _cell(value: np.generic) -> str:
    # The shortest text that reads back to the same value in the metric's own dtype.
    return str(np.asarray(value)[()])


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file; a last line that a crash has torn is left out.

    **Arguments:**

    - `path`: the file.

    **Returns:**

    Cells by column for each row; no rows if there is no file.
    """
    if not path.exists():
        return []
    lines = path.read_text().splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
    return list(csv.DictReader(lines))
