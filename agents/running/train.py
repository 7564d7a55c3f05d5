"""The running loop: seeds side by side, compiled once, logged, checkpointed, resumable."""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from agents.agent import AbstractAgent
from agents.algorithms import name_of
from agents.running import checkpoint as checkpoints
from agents.running.errors import TrainingDiverged, TrainingInterrupted
from agents.running.events import TensorBoardLog, mean_over_seeds
from agents.running.files import write_whole
from agents.running.folder import (
    CHECKPOINT,
    CONFIG,
    PICTURE,
    TENSORBOARD,
    check_folder,
    sole_writer,
)
from agents.running.memory import telling_what_to_lower
from agents.running.outline import outline
from agents.running.programs import Programs
from agents.running.progress import ProgressReport, Show, say
from agents.running.scalars import SCALARS, ScalarLog, read_scalars
from agents.running.signals import StopRequest
from agents.running.tracking import Tracker, Tracking
from agents.settings import check_seed, to_plain
from zoo.annotations import checked
from zoo.parts.checks import check_counts


@dataclass(frozen=True)
class TrainResult:
    """What `train` returns.

    **Attributes:**

    - `folder`: the run's folder.
    - `state`: the final state, with a leading axis over seeds.
    - `metrics`: the last measured value of each metric, shape `[seeds]`.
    - `iterations`, `env_steps`: how many are done, the latter for each seed.
    - `compile_seconds`: the time XLA took.
    - `steps_per_second`: environment steps per second over all seeds, compilation apart.
    """

    folder: Path
    state: Any
    metrics: dict[str, np.ndarray]
    iterations: int
    env_steps: int
    compile_seconds: float
    steps_per_second: float


@checked
def train(
    agent: AbstractAgent,
    *,
    steps: int,
    seeds: int = 1,
    seed: int = 0,
    out: str | Path,
    resume: bool = False,
    drop_scalars: bool = False,
    evaluate_every: int | None = None,
    evaluation_episodes: int = 64,
    checkpoint_every: int | None = None,
    progress: Show = True,
    track: Tracker | None = None,
    track_project: str = "trace-zoo",
) -> TrainResult:
    """Train several seeds at once and leave a folder with everything about it.

    ```python
    ppo = agents.PPO(env="RepeatPreviousEasy", memory=zoo.spec("rtu", hidden=96))
    result = agents.train(ppo, steps=1_000_000, seeds=3, out="runs/demo")
    ```

    The folder holds `config.json`, `scalars.csv`, `tensorboard/`, `learning_curve.png` and
    `checkpoint.eqx`. A run that was interrupted and resumed leaves bitwise the same states
    and scalars as one that ran through. On resuming, `steps` may be larger than before, to
    go on further; what the agent itself derives from a number of steps, such as an annealed
    learning rate, is part of its configuration and cannot change.

    **Arguments:**

    - `agent`: what to train, such as `agents.PPO(...)`.
    - `steps`: environment steps for each seed, rounded up to whole iterations.
    - `seeds`: how many seeds are trained, by `jax.vmap`.
    - `seed`: the root of all randomness, from 0 to 4294967295.
    - `out`: the folder: new, empty, or with `resume` that of the run to go on with.
    - `resume`: whether to go on from the checkpoint in `out`.
    - `drop_scalars`: on resuming, leave rows of the scalars blank that are missing or damaged,
      instead of refusing to go on; the damaged file is kept under another name.
    - `evaluate_every`: iterations between evaluations; by default about 20 a run, and the
        last iteration always; 0 for none.
    - `evaluation_episodes`: episodes of each evaluation, for each seed.
    - `checkpoint_every`: iterations between checkpoints; by default about 20 a run.
    - `progress`: whether to report progress; `"bar"` or `"lines"` force one form.
    - `track`: `"wandb"` or `"trackio"`, which gets the configuration and each metric's mean over
        seeds, as a run with the folder's name; a resumed run goes on there. Its package is
        imported only then. If it fails, a warning says so once, and training goes on.
    - `track_project`: the project of that run.

    **Returns:**

    The final state and metrics.

    **Raises:**

    - `ValueError`, `TypeError`: if an argument breaks its rule.
    - `RunFolderError`: if `out` holds something else or nothing to resume, or another process
      writes to it.
    - `CheckpointError`: if the checkpoint in `out` is damaged or of something else.
    - `ScalarsError`: if rows of the scalars are missing or damaged.
    - `MemoryError`: if there is too little memory, with settings to lower.
    - `OSError`: if a file cannot be written, as on a full disk; the last checkpoint is kept.
    - `ModuleNotFoundError`: if the package of `track` is missing, with the line that installs it.
    - `TrainingDiverged`: at the first metric or state that is not finite.
    - `TrainingInterrupted`: after Ctrl-C, SIGTERM or SIGHUP, once a checkpoint is written.
    """
    check_counts(1, steps=steps, seeds=seeds, evaluation_episodes=evaluation_episodes)
    check_counts(1, **({} if checkpoint_every is None else {"checkpoint_every": checkpoint_every}))
    check_counts(0, **({} if evaluate_every is None else {"evaluate_every": evaluate_every}))
    check_seed(seed=seed)
    folder, total = Path(out), -(-steps // agent.steps_per_iteration)
    if drop_scalars and not resume:
        raise ValueError("`drop_scalars` (=True) has no meaning without `resume`.")
    tracking = Tracking(track, track_project)
    stored = _stored_config(folder)
    if evaluate_every is None:
        # `steps` may have changed since, and the default depends on it.
        rhythm = stored.get("evaluate_every") if resume and stored else None
        evaluate_every = rhythm if isinstance(rhythm, int) else max(1, total // 20)
    config = {
        "algorithm": name_of(type(agent)),
        "agent": to_plain(agent),
        "seeds": seeds,
        "seed": seed,
        "evaluate_every": evaluate_every,
        "evaluation_episodes": evaluation_episodes,
    }
    check_folder(folder, stored, config, resume=resume)
    sizes = {"seeds": seeds, "evaluation_episodes": evaluation_episodes}
    with sole_writer(folder), telling_what_to_lower(agent, **sizes):
        if not resume:  # another process may have begun a run in the meantime
            check_folder(folder, _stored_config(folder), config, resume=False)
        episodes = evaluation_episodes if evaluate_every else 0
        _announce(agent, config, steps, total, progress)
        programs = Programs(agent, seed=seed, seeds=seeds, evaluation_episodes=episodes)
        say(f"compiled in {programs.compile_seconds:.1f} s", progress)
        if resume:
            state, done = checkpoints.load(folder / CHECKPOINT, programs.state, config=config)
            start = checkpoints.progress_of(folder / CHECKPOINT, done)
        else:
            state, start = programs.init(), 0
        if start > total:
            raise ValueError(
                f"`steps` (={steps}) is less than the run in {folder} has done: "
                f"{start * agent.steps_per_iteration}."
            )
        every = checkpoint_every or max(1, total // 20)
        loop = _Loop(folder, config, programs, tracking, total=total, checkpoint_every=every)
        return loop.run(state, start, show=progress, drop_scalars=drop_scalars)


def _announce(
    agent: AbstractAgent, config: Mapping[str, Any], steps: int, total: int, show: Show
) -> None:
    """Say what is about to be compiled, which takes long, and where `steps` had to be rounded."""
    size, seeds = agent.steps_per_iteration, config["seeds"]
    if steps != total * size:
        whole = f"{total:,} iterations of {size:,}" if total > 1 else "one iteration"
        say(f"steps: {total * size:,} of each seed, {steps:,} rounded up to {whole}", show)
    about = outline(config)
    parts = (about.memory, about.gradient, f"{seeds} seeds" if seeds > 1 else "1 seed")
    listed = ", ".join(filter(None, parts))
    say(f"compiling {type(agent).__name__} on {about.environment} ({listed}) …", show)


class _Loop:
    """One run of the loop: what is open and what has not been reported yet."""

    def __init__(
        self,
        folder: Path,
        config: dict,
        programs: Programs,
        tracking: Tracking,
        *,
        total: int,
        checkpoint_every: int,
    ):
        self.folder, self.config, self.programs = folder, config, programs
        self.tracking = tracking
        self.total, self.checkpoint_every = total, checkpoint_every
        self.pending: tuple[int, dict] | None = None
        self.saved = 0

    def run(self, state: Any, start: int, *, show: Show, drop_scalars: bool) -> TrainResult:
        self.sound = jax.device_get(self.programs.finite(state))
        self.saved = start
        if start == 0:
            # First of all: a folder with anything in it can then always be resumed.
            self._save(state, 0)
        described = self._described()
        write_whole(self.folder / CONFIG, (json.dumps(described, indent=2) + "\n").encode())
        seeds, size = self.programs.seeds, self.programs.steps_per_iteration
        metrics, path = self.programs.metrics, self.folder / SCALARS
        blank = size if drop_scalars else None
        self.scalars = ScalarLog(path, metrics, seeds=seeds, keep=start, blank=blank)
        purge = start * size + 1 if start else None
        self.board = TensorBoardLog(self.folder / TENSORBOARD, seeds=seeds, purge=purge)
        report = ProgressReport(self.total, start=start, steps=seeds * size, show=show)
        self.speed = 0.0
        try:
            self.tracking.begin(self.folder, described)
            with report as self.report, StopRequest() as stop:
                state = self._iterate(state, start, stop)
        except BaseException as error:
            # What a full disk does to the ending is not to hide what it has done before.
            with contextlib.suppress(OSError):
                self._end(failed=True)
            if isinstance(error, OSError) and error.errno is not None:
                kept = f"the checkpoint of iteration {self.saved} is kept"
                what = f"{error.strerror}; {kept}"
                raise OSError(error.errno, what, error.filename) from error
            raise
        self._end()
        return self._result(state)

    def _end(self, *, failed: bool = False) -> None:
        with contextlib.ExitStack() as ending:
            for end in (self._draw, self.board.close, self.scalars.close):
                ending.callback(end)
            ending.callback(self.tracking.close, failed=failed)

    def _iterate(self, state: Any, start: int, stop: StopRequest) -> Any:
        every = self.config["evaluate_every"]
        for iteration in range(start + 1, self.total + 1):
            last = iteration == self.total
            state, report = self.programs.step(state)
            metrics = report.scalars()
            self._flush()  # the iteration before, while this one runs
            if every and (last or iteration % every == 0):
                metrics = metrics | self.programs.evaluate(state, iteration)
            self.pending, asked = (iteration, metrics), stop.number
            if last or asked is not None or iteration % self.checkpoint_every == 0:
                self._flush()
                self._check_state(state, iteration)
                self.scalars.sync()
                self._save(state, iteration)
            if asked is not None and not last:
                size, path = self.programs.steps_per_iteration, self.folder / CHECKPOINT
                raise TrainingInterrupted(
                    f"stopped after iteration {iteration} of {self.total} ({iteration * size:,} of "
                    f"{self.total * size:,} steps of each seed), which {path} holds.",
                    asked,
                )
        return state

    def _flush(self) -> None:
        if self.pending is None:
            return
        iteration, metrics = jax.device_get(self.pending)
        self.pending = None
        env_steps = iteration * self.programs.steps_per_iteration
        score = mean_over_seeds(metrics.get("return", np.array([np.nan])))
        self.speed = self.report.update(iteration, score)
        self.scalars.write(iteration, env_steps, metrics)
        for log in (self.board, self.tracking):
            log.write(env_steps, metrics, steps_per_second=self.speed)
        self._check_metrics(iteration, metrics)

    def _check_metrics(self, iteration: int, metrics: Mapping[str, np.ndarray]) -> None:
        checked = {name: x for name, x in metrics.items() if name in self.programs.checked}
        for seed in range(self.programs.seeds):
            values = {name: x[seed] for name, x in checked.items()}
            bad = [f"`{name}` is {x}" for name, x in values.items() if not np.isfinite(x)]
            if bad:
                self._diverged(iteration, seed, ", ".join(bad))

    def _check_state(self, state: Any, iteration: int) -> None:
        # Parameters can overflow in the last update, after the metrics were taken. What was
        # not finite in the first state is so on purpose.
        now = jax.device_get(self.programs.finite(state))
        for name, finite in now.items():
            for seed in np.flatnonzero(self.sound[name] & ~finite):
                self._diverged(iteration, int(seed), f"array `{name}` of the state is not finite")

    def _diverged(self, iteration: int, seed: int, what: str) -> None:
        path, env_steps = self.folder / CHECKPOINT, iteration * self.programs.steps_per_iteration
        raise TrainingDiverged(
            f"training diverged in iteration {iteration} (environment step {env_steps}), seed "
            f"{seed}: {what}. The last good checkpoint, of iteration {self.saved}, is kept "
            f"in {path}."
        )

    def _save(self, state: Any, iteration: int) -> None:
        env_steps = iteration * self.programs.steps_per_iteration
        done = {"iteration": iteration, "env_steps": env_steps}
        checkpoints.save(self.folder / CHECKPOINT, state, config=self.config, progress=done)
        self.saved = iteration

    def _described(self) -> dict[str, Any]:
        steps = self.total * self.programs.steps_per_iteration
        return {**self.config, "steps": steps, "versions": checkpoints.versions()}

    def _draw(self) -> None:
        # Where matplotlib takes its time nobody waits for the first step any more.
        from agents.running.curves import learning_curve

        with contextlib.suppress(ValueError):  # no episode has ended yet: nothing to draw
            learning_curve({self.folder.resolve().name: self.folder}, self.folder / PICTURE)

    def _result(self, state: Any) -> TrainResult:
        logged = read_scalars(self.folder)
        measured = {name: x for name, x in logged.metrics.items() if not np.isnan(x).all()}
        return TrainResult(
            folder=self.folder,
            state=state,
            metrics={name: logged.curve(name)[1][-1] for name in measured},
            iterations=self.total,
            env_steps=self.total * self.programs.steps_per_iteration,
            compile_seconds=self.programs.compile_seconds,
            steps_per_second=self.speed,
        )


def _stored_config(folder: Path) -> dict[str, Any] | None:
    path = folder / CHECKPOINT
    return checkpoints.read_header(path).config if path.exists() else None
