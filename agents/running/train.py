"""Running agents: several seeds, compiled once, recorded, checkpointed, resumable."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents.agent import AbstractAgent
from agents.algorithms import configuration
from agents.envs.wrappers.base import check_end, runs_on_the_host
from agents.learning.schedules import iterations_of
from agents.running.checkpoint import iterations_in, load, progress_of, read_header
from agents.running.devices import Devices
from agents.running.errors import CANNOT_GO_BACK
from agents.running.folder import CHECKPOINT, check_folder, sole_writer
from agents.running.loop import Loop
from agents.running.memory import telling_what_to_lower
from agents.running.outline import outline
from agents.running.processes import first_decides, telling_who_is_lost, wait_for_all, writes
from agents.running.programs import Programs
from agents.running.progress import Show, say
from agents.running.saving import Checkpoints, saver
from agents.running.scalars import read_scalars
from agents.running.tracking import Tracker, Tracking
from zoo.annotations import Count, Seed, Size, checked

_MOST_LOGGED = 10_000  # iterations of a run, where nothing else is asked for


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
    steps: Count,
    seeds: Count = 1,
    seed: Seed = 0,
    out: str | Path,
    resume: bool = False,
    drop_scalars: bool = False,
    evaluate_every: Size | None = None,
    evaluation_episodes: Count = 64,
    checkpoint_every: Count | None = None,
    checkpoints: Checkpoints = "plain",
    log_every: Count | None = None,
    devices: Devices | None = None,
    progress: Show = True,
    track: Tracker | None = None,
    track_project: str | None = None,
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

    Where `agents.running.processes.join` has joined several processes, all of them call this
    alike, and the run is split over the devices of all. The first one writes to `out`, which all
    have to see.

    **Arguments:**

    - `agent`: what to train, such as `agents.PPO(...)`.
    - `steps`: environment steps for each seed, rounded up to whole iterations.
    - `seeds`: how many seeds are trained, side by side where `devices` says nothing else.
    - `seed`: the root of all randomness, from 0 to 4294967295.
    - `out`: the folder: new, empty, or with `resume` that of the run to go on with.
    - `resume`: whether to go on from the checkpoint in `out`.
    - `drop_scalars`: on resuming, leave rows of the scalars blank that are missing or damaged,
      instead of refusing to go on; the damaged file is kept under another name.
    - `evaluate_every`: iterations between evaluations; by default about 20 a run, and the
        last iteration always; 0 for none.
    - `evaluation_episodes`: episodes of each evaluation, for each seed.
    - `checkpoint_every`: iterations between checkpoints; by default about 20 a run.
    - `checkpoints`: `"plain"` for one file, which the first process writes, or `"sharded"` for a
      folder to which orbax writes, in every process what lies on its devices, while training goes
      on. On resuming it may be the other; everything that reads a run reads both.
    - `log_every`: iterations between those whose metrics are fetched and recorded, besides those
        that are evaluated; by default so many that there are 10,000 at most. What is not finite
        in between stops training at the next one.
    - `devices`: over how many devices the run is split, or `"all"` that JAX has: their number must
        divide that of the seeds, which are split then, or else that of the environments. What a
        seed learns is bitwise the same with any number of CPUs that divides the seeds, and the same
        but for rounding elsewhere, and without `devices`. On resuming it may be another.
    - `progress`: whether to report progress; `"bar"` or `"lines"` force one form.
    - `track`: `"wandb"` or `"trackio"`, which gets the configuration and each metric's mean over
        seeds, as a run with the folder's name; a resumed run goes on there. Its package is
        imported only then. If it fails, a warning says so once, and training goes on.
    - `track_project`: the project of that run; by default `"trace-zoo"`.

    **Returns:**

    The final state and metrics.

    **Raises:**

    - `ValueError`, `TypeError`: if an argument breaks its rule; also if episodes of the environment
      have no time limit, and it is evaluated in whole ones.
    - `RunFolderError`: if `out` holds something else or nothing to resume, or another process
      writes to it.
    - `CheckpointError`: if the checkpoint in `out` is damaged or of something else.
    - `ScalarsError`: if rows of the scalars are missing or damaged.
    - `MemoryError`: if there is too little memory, with settings to lower.
    - `OSError`: if a file cannot be written, as on a full disk; the last checkpoint is kept.
    - `ModuleNotFoundError`: if the package of `track`, or orbax for `checkpoints`, is missing, with
      the line that installs it.
    - `ProcessLost`: if another process of the job cannot be reached, or has refused the run.
    - `TrainingDiverged`: at the first metric or state that is not finite.
    - `TrainingInterrupted`: after Ctrl-C, SIGTERM or SIGHUP, once a checkpoint is written.
    """
    folder, total = Path(out), iterations_of(steps, agent.steps_per_iteration)
    if drop_scalars and not resume:
        raise ValueError("`drop_scalars` (=True) has no meaning without `resume`.")
    resumable = not runs_on_the_host(agent.environment[0])
    if resume and not resumable:
        raise ValueError(
            f"`resume` (=True) must be left out for {agent.env_name}. {CANNOT_GO_BACK}"
        )
    tracking = Tracking(track, track_project)
    stored = _stored_config(folder)
    # `steps` may have changed since, and the defaults depend on it.
    before = stored if resume and stored else {}
    if evaluate_every is None:
        evaluate_every = _rhythm(before, "evaluate_every", max(1, total // 20))
    if evaluate_every:
        check_end(agent.environment[0])
    if log_every is None:
        log_every = _rhythm(before, "log_every", -(-total // _MOST_LOGGED))
    config = {
        **configuration(agent, seeds=seeds, seed=seed),
        "evaluate_every": evaluate_every,
        "evaluation_episodes": evaluation_episodes,
        "log_every": log_every,
    }
    sizes = {"seeds": seeds, "evaluation_episodes": evaluation_episodes}
    with contextlib.ExitStack() as held:
        held.enter_context(telling_what_to_lower(agent, **sizes))
        held.enter_context(telling_who_is_lost())
        with first_decides():
            if writes():
                check_folder(folder, stored, config, resume=resume)
                held.enter_context(sole_writer(folder))
                if before:
                    done_of(agent, steps, folder)
                if not resume:  # another process may have begun a run in the meantime
                    check_folder(folder, _stored_config(folder), config, resume=False)
        progress = progress and writes()
        episodes = evaluation_episodes if evaluate_every else 0
        _announce(agent, config, steps, total, progress)
        programs = Programs(
            agent, seed=seed, seeds=seeds, evaluation_episodes=episodes, devices=devices
        )
        wait_for_all()
        say(f"compiled in {programs.compile_seconds:.1f} s", progress)
        if resume:
            place, path = programs.placement, folder / CHECKPOINT
            where = place.of_each(programs.state)
            state, done = load(path, programs.state, config=config, where=where)
            state, start = place.put(state), progress_of(path, done)
        else:
            state, start = programs.init(), 0
        every = checkpoint_every or max(1, total // 20)
        saves = held.enter_context(contextlib.closing(saver(checkpoints, folder, start)))
        loop = Loop(
            folder, config, programs, tracking, saves,
            total=total, checkpoint_every=every, resumable=resumable,
        )  # fmt: skip
        state = loop.run(state, start, resume=resume, show=progress, drop_scalars=drop_scalars)
        wait_for_all()  # the files are written
        logged = read_scalars(folder)
        measured = [name for name in logged.metrics if logged.has(name)]
        return TrainResult(
            folder=folder,
            state=state,
            metrics={name: logged.last(name) for name in measured},
            iterations=total,
            env_steps=total * agent.steps_per_iteration,
            compile_seconds=programs.compile_seconds,
            steps_per_second=loop.records.speed,
        )


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


def _rhythm(stored: Mapping[str, Any], name: str, default: int) -> int:
    found = stored.get(name)
    return found if isinstance(found, int) else default


def done_of(agent: AbstractAgent, steps: int, folder: Path) -> int:
    """Return the iterations that the run in a folder has done; 0 where there is none.

    **Raises:**

    `ValueError` if those are more than `steps` environment steps of an agent.
    """
    done = iterations_in(folder / CHECKPOINT)
    if done > iterations_of(steps, agent.steps_per_iteration):
        raise ValueError(
            f"`steps` (={steps}) is less than the run in {folder} has done: "
            f"{done * agent.steps_per_iteration}."
        )
    return done


def _stored_config(folder: Path) -> dict[str, Any] | None:
    path = folder / CHECKPOINT
    return read_header(path).config if path.exists() else None
