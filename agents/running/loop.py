"""The loop of a run: iterate, record, evaluate and save in their rhythms, until the end."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from agents.running.checkpoint import versions
from agents.running.errors import TrainingDiverged, TrainingInterrupted
from agents.running.folder import CHECKPOINT
from agents.running.processes import Agreement, fetch, several, writes
from agents.running.programs import EVALUATED, Programs
from agents.running.progress import Show
from agents.running.records import NoRecords, Records
from agents.running.saving import AbstractSaver
from agents.running.scalars import SCALARS, has_row, is_due
from agents.running.signals import StopRequest
from agents.running.tracking import Tracking


class Loop:
    """One run of the loop: what is open and what has not been reported yet."""

    def __init__(
        self,
        folder: Path,
        config: dict,
        programs: Programs,
        tracking: Tracking,
        saver: AbstractSaver,
        *,
        total: int,
        checkpoint_every: int,
        resumable: bool,
    ):
        self.folder, self.config, self.programs = folder, config, programs
        self.place = (folder / CHECKPOINT).absolute()
        self.tracking, self.saver = tracking, saver
        self.total, self.checkpoint_every = total, checkpoint_every
        self.resumable = resumable
        self.pending: tuple[int, dict, Any] | None = None

    def run(self, state: Any, start: int, *, resume: bool, show: Show, drop_scalars: bool) -> Any:
        """Go on from a state until the end, and return the last one.

        **Arguments:**

        - `start`: iterations done before.
        - `resume`: whether the state was loaded from the folder.
        - `show`, `drop_scalars`: see `agents.train`.
        """
        self.sound = fetch(self.programs.finite(state))
        if not resume:
            # First of all, and whole: a folder with anything in it can then always be resumed.
            self._save(state, 0)
            self.saver.finish()
        self.records = self._records(start, show, drop_scalars) if writes() else NoRecords()
        try:
            self.records.begin()
            with StopRequest() as stop:
                state, asked = self._iterate(state, start, stop)
            self.saver.finish()
        except BaseException as error:
            # What a full disk does to the ending is not to hide what it has done before.
            with contextlib.suppress(OSError):
                self.records.end(failed=True)
            if isinstance(error, OSError) and error.errno is not None:
                # Gone, or moved with its folder.
                left = "is kept" if self.place.exists() else f"is no longer at {self.place}"
                what = f"{error.strerror}; the checkpoint of iteration {self.saver.saved} {left}"
                raise OSError(error.errno, what, error.filename) from error
            raise
        self.records.end()
        # Too late for this run, and not for what would come after it. Of several processes what
        # they have agreed on: one by itself would be missed by the others, which are done.
        if number := asked if several() else stop.number:
            raise self._interrupted(self.total, number)
        return state

    def _records(self, start: int, show: Show, drop_scalars: bool) -> Records:
        size = self.programs.steps_per_iteration
        described = {
            **self.config,
            "steps": self.total * size,
            "versions": versions(),
        }
        return Records(
            self.folder,
            described,
            self.programs.metrics,
            self.tracking,
            kept=self._kept(start),
            start=start,
            total=self.total,
            steps=size,
            show=show,
            drop_scalars=drop_scalars,
        )

    def _kept(self, start: int) -> list[int]:
        """The iterations so far whose rows are there, and stay."""
        kept = [i for i in range(1, start + 1) if is_due(i, self.config)]
        # The last one has a row where it was known to be the last, and not where a run was stopped
        # at it that is asked for no more now.
        last = start == self.total and not is_due(start, self.config)
        return kept + [start] * (last and has_row(self.folder / SCALARS, start))

    def _is_evaluated(self, iteration: int) -> bool:
        every = self.config["evaluate_every"]
        return bool(every) and (iteration == self.total or iteration % every == 0)

    def _is_logged(self, iteration: int) -> bool:
        return iteration == self.total or is_due(iteration, self.config)

    def _iterate(self, state: Any, start: int, stop: StopRequest) -> tuple[Any, int | None]:
        """The last state, and the signal that came before it, if one did."""
        agreement, before, asked = Agreement(), None, None
        for iteration in range(start + 1, self.total + 1):
            last = iteration == self.total
            asked_for = agreement.on(lambda: stop.number)
            state, report = self.programs.step(state)
            self._flush()  # the iteration before, while this one runs
            if before is not None:
                # No more than one waits for its turn, where nothing of it is fetched either.
                jax.block_until_ready(before)
            before = report.scalars()
            metrics = before
            if self._is_evaluated(iteration):
                metrics = metrics | self.programs.evaluate(state, iteration)
            if self._is_logged(iteration):
                self.pending = (iteration, metrics, report.learned)
            asked = asked_for()
            if last or asked is not None or iteration % self.checkpoint_every == 0:
                self._flush()
                self._check_state(state, iteration)
                self.records.sync()
                self._save(state, iteration)
            if asked is not None and not last:
                self.saver.finish()
                raise self._interrupted(iteration, asked)
        return state, asked

    def _interrupted(self, iteration: int, number: int) -> TrainingInterrupted:
        size, path = self.programs.steps_per_iteration, self.folder / CHECKPOINT
        return TrainingInterrupted(
            f"stopped after iteration {iteration} of {self.total} ({iteration * size:,} of "
            f"{self.total * size:,} steps of each seed), which {path} holds.",
            number,
            resumable=self.resumable,
        )

    def _flush(self) -> None:
        if self.pending is None:
            return
        iteration, metrics, learned = self.pending
        (metrics, learned), self.pending = fetch((metrics, learned)), None
        self.records.write(iteration, iteration * self.programs.steps_per_iteration, metrics)
        self._check_metrics(iteration, metrics, learned)

    def _check_metrics(
        self, iteration: int, metrics: Mapping[str, np.ndarray], learned: np.ndarray
    ) -> None:
        for seed in range(self.programs.seeds):
            names = self.programs.checked if learned[seed] else EVALUATED
            values = {name: x[seed] for name, x in metrics.items() if name in names}
            bad = [f"`{name}` is {x}" for name, x in values.items() if not np.isfinite(x)]
            if bad:
                self._diverged(iteration, seed, ", ".join(bad))

    def _check_state(self, state: Any, iteration: int) -> None:
        # Parameters can overflow in the last update, after the metrics were taken. What was
        # not finite in the first state is so on purpose.
        now = fetch(self.programs.finite(state))
        for name, finite in now.items():
            for seed in np.flatnonzero(self.sound[name] & ~finite):
                self._diverged(iteration, int(seed), f"array `{name}` of the state is not finite")

    def _diverged(self, iteration: int, seed: int, what: str) -> None:
        self.saver.finish()
        path, env_steps = self.folder / CHECKPOINT, iteration * self.programs.steps_per_iteration
        raise TrainingDiverged(
            f"training diverged in iteration {iteration} (environment step {env_steps}), seed "
            f"{seed}: {what}. The last good checkpoint, of iteration {self.saver.saved}, is kept "
            f"in {path}."
        )

    def _save(self, state: Any, iteration: int) -> None:
        env_steps = iteration * self.programs.steps_per_iteration
        done = {"iteration": iteration, "env_steps": env_steps}
        self.saver.save(state, config=self.config, progress=done)
