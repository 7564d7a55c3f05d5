"""What a run leaves in its folder while it goes on, and what it shows of itself."""

import abc
import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents.running.events import TensorBoardLog, mean_over_seeds
from agents.running.files import write_whole
from agents.running.folder import CONFIG, PICTURE, TENSORBOARD
from agents.running.progress import ProgressReport, Show
from agents.running.scalars import SCALARS, ScalarLog
from agents.running.tracking import Tracking


class AbstractRecords(abc.ABC):
    """Where the metrics of a run go.

    **Attributes:**

    - `speed`: environment steps per second so far, over all seeds.
    """

    speed: float = 0.0

    @abc.abstractmethod
    def begin(self) -> None:
        """Begin to report, as the loop begins."""

    @abc.abstractmethod
    def write(self, iteration: int, env_steps: int, metrics: Mapping[str, np.ndarray]) -> None:
        """Record the metrics of an iteration, arrays over seeds."""

    @abc.abstractmethod
    def sync(self) -> None:
        """Put what was recorded on the disk; to be called before a checkpoint."""

    @abc.abstractmethod
    def end(self, *, failed: bool = False) -> None:
        """Close everything; `failed` says that the training has not come to its end."""


class Records(AbstractRecords):
    """The folder's `config.json`, `scalars.csv` and `tensorboard/`, its picture at the end, a
    tracker, and progress on the terminal.

    **Arguments:**

    - `folder`: of the run.
    - `config`: for `config.json` and the tracker.
    - `metrics`: names of all of them.
    - `tracking`: the tracker, or none.
    - `kept`: iterations before the first whose rows are there already.
    - `start`, `total`: iterations done before, and in all.
    - `steps`: environment steps of an iteration, for each seed.
    - `show`: how to report progress.
    - `drop_scalars`: whether to leave rows blank that are missing or damaged.

    **Raises:**

    `ScalarsError` if rows are missing or damaged, `OSError` if a file cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any],
        metrics: Sequence[str],
        tracking: Tracking,
        *,
        kept: Sequence[int],
        start: int,
        total: int,
        steps: int,
        show: Show,
        drop_scalars: bool,
    ):
        self._folder, self._config, self._tracking = folder, config, tracking
        seeds, blank = config["seeds"], steps if drop_scalars else None
        # First, as it may refuse the rows that are there: who is refused changes nothing.
        self._scalars = ScalarLog(folder / SCALARS, metrics, seeds=seeds, keep=kept, blank=blank)
        write_whole(folder / CONFIG, (json.dumps(config, indent=2) + "\n").encode())
        # What an attempt before has written behind the last row that stays; and its picture, which
        # would stand for the end of this one.
        purge = max(kept, default=0) * steps + 1
        self._board = TensorBoardLog(folder / TENSORBOARD, seeds=seeds, purge=purge)
        (folder / PICTURE).unlink(missing_ok=True)
        self._report = ProgressReport(total, start=start, steps=seeds * steps, show=show)
        self._ending = contextlib.ExitStack()

    def begin(self) -> None:
        self._tracking.begin(self._folder, self._config)
        self._ending.enter_context(self._report)

    def write(self, iteration: int, env_steps: int, metrics: Mapping[str, np.ndarray]) -> None:
        score = mean_over_seeds(metrics.get("return", np.array([np.nan])))
        self.speed = self._report.update(iteration, score)
        self._scalars.write(iteration, env_steps, metrics)
        for log in (self._board, self._tracking):
            log.write(env_steps, metrics, steps_per_second=self.speed)

    def sync(self) -> None:
        self._scalars.sync()

    def end(self, *, failed: bool = False) -> None:
        with contextlib.ExitStack() as ending:
            for end in (self._draw, self._board.close, self._scalars.close, self._ending.close):
                ending.callback(end)
            ending.callback(self._tracking.close, failed=failed)

    def _draw(self) -> None:
        # Where matplotlib takes its time nobody waits for the first step any more.
        from agents.running.curves import learning_curve

        with contextlib.suppress(ValueError):  # no episode has ended yet: nothing to draw
            learning_curve({self._folder.resolve().name: self._folder}, self._folder / PICTURE)


class NoRecords(AbstractRecords):
    """Of a process that another one writes for."""

    def begin(self) -> None:
        pass

    def write(self, iteration: int, env_steps: int, metrics: Mapping[str, np.ndarray]) -> None:
        pass

    def sync(self) -> None:
        pass

    def end(self, *, failed: bool = False) -> None:
        pass
