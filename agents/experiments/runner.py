"""Running an experiment: every run an ordinary folder, so that all of it can be resumed."""

import itertools
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from agents.agent import AbstractAgent
from agents.algorithms import configuration
from agents.envs.wrappers.base import runs_on_the_host
from agents.experiments.costs import cost_rows
from agents.experiments.experiment import Experiment, Scale, Settings
from agents.experiments.results import (
    RESULTS,
    Row,
    diverged_rows,
    rows_of,
    told_lacking,
    write_rows,
)
from agents.learning.schedules import iterations_of
from agents.running.checkpoint import iterations_in, read_arrays, read_header
from agents.running.curves import learning_curve
from agents.running.errors import TrainingDiverged
from agents.running.folder import CHECKPOINT, check_folder, folder_name
from agents.running.progress import Show
from agents.running.scalars import check_whole, read_scalars
from agents.running.train import done_of, train
from zoo.annotations import checked

REPORTED, TUNING = 0, 1_000_000  # roots of randomness


@checked
def run(
    experiment: Experiment,
    out: str | Path,
    *,
    scale: str = "small",
    variants: Sequence[str] = (),
    progress: Show = False,
    say: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Run what is missing of an experiment, and write its table and figure.

    The folder holds a run's folder for each environment and variant, below `runs/`, with what was
    tuned below `tuning/`; `results.csv`; and a picture of the curves for each environment. A run
    that is there and whole is not run again; one that was stopped goes on. Costs are measured
    anew, and there is no more than the table.

    A run that diverges is a result too, and so is one in which no episode ended: its rows are NaN,
    of settings that are tuned it is never the best, and a claim about it is not settled.

    **Arguments:**

    - `out`: the folder, new or of the same experiment at the same scale.
    - `scale`: one of `experiment.scales`.
    - `variants`: run these only, without a table or picture; all by default. Processes with
      variants of their own may share the folder: a call for all then finds their runs.
    - `progress`: as for `agents.train`.
    - `say`: called with a line for each run.

    **Returns:**

    The table: a row for each seed, or for each measurement.

    **Raises:**

    `ValueError` for a scale, a variant or a metric that there is not, or variants where costs are
    measured, all in one go; what an agent's settings raise, before any is trained; and what
    `complete` does.
    """
    size, out = size_of(experiment, scale), Path(out)
    _check_variants(experiment, variants)
    if experiment.kind == "cost":
        out.mkdir(parents=True, exist_ok=True)
        rows = cost_rows(experiment, size, say)
        write_rows(out / RESULTS, rows)
        return rows

    def rows_for(
        environment: str, variant: str, tuned: Settings, folder: Path, seeds: int, seed: int
    ) -> list[Row]:
        agent = experiment.agent(environment, variant, tuned)
        where = str(folder.relative_to(out))
        if complete(agent, folder, size.steps, seeds, seed, where, progress=progress, say=say):
            found = rows_of(experiment, environment, variant, tuned, folder)
            if lacking := told_lacking(found, experiment.metric):
                say(f"{where}: {lacking}")
            return found
        steps = iterations_in(folder / CHECKPOINT) * agent.steps_per_iteration
        return diverged_rows(environment, variant, tuned, seeds, steps)

    rows: list[Row] = []
    variants_to_run = variants or tuple(experiment.variants)
    # What is wrong is told before any training.
    kinds: dict[type, AbstractAgent] = {}
    for variant, environment, tuned in itertools.product(
        variants_to_run, experiment.environments, experiment.candidates()
    ):
        agent = experiment.agent(environment, variant, tuned)
        kinds.setdefault(type(agent), agent)
    for agent in kinds.values():
        _check_metric(experiment, agent)
    for variant in variants_to_run:
        tuned = _tuned(experiment, variant, out, size.tuning_seeds, rows_for)
        for environment in experiment.environments:
            folder = run_folder(out, environment, variant)
            rows += rows_for(environment, variant, tuned, folder, size.seeds, REPORTED)
    if variants:
        return rows
    write_rows(out / RESULTS, rows)
    for environment in experiment.environments:
        metric = "return" if experiment.probe else experiment.metric
        folders = {v: run_folder(out, environment, v) for v in experiment.variants}
        # One that diverged before any episode ended has rows in the table, and no curve.
        runs = {v: folder for v, folder in folders.items() if read_scalars(folder).has(metric)}
        if not runs:
            continue
        path = out / f"{folder_name(environment)}.png"
        title = f"{experiment.name}: {environment}"
        learning_curve(runs, path, metric=metric, smoothing=None, title=title, together=True)
    return rows


def size_of(experiment: Experiment, scale: str) -> Scale:
    """Look up how long an experiment runs at a scale.

    **Raises:**

    `ValueError` for a scale that there is not.
    """
    check_known("scale", scale, experiment.scales)
    return experiment.scales[scale]


def _check_variants(experiment: Experiment, variants: Sequence[str]) -> None:
    if variants and experiment.kind == "cost":
        raise ValueError(
            f"`variants` (={', '.join(variants)}) must be left out of {experiment.name!r}, which "
            "measures costs of all of them in one go."
        )
    for variant in variants:
        check_known("variants", variant, experiment.variants)


def _check_metric(experiment: Experiment, agent: AbstractAgent) -> None:
    if experiment.probe or runs_on_the_host(agent.environment[0]):
        return
    report = jax.eval_shape(lambda key: agent.iterate(agent.init(key=key))[1], jax.random.key(0))
    check_known("metric", experiment.metric, sorted(report.scalars()))


def check_known(name: str, label: str, known: Collection[str]) -> None:
    """Raise `ValueError` where an argument's label is not one of those that there are."""
    if label not in known:
        raise ValueError(f"`{name}` (={label!r}) must be one of {', '.join(known)}.")


def run_folder(out: Path, environment: str, variant: str) -> Path:
    """Name the folder of a reported run."""
    return out / "runs" / folder_name(environment) / folder_name(variant)


def complete(
    agent: AbstractAgent,
    folder: Path,
    steps: int,
    seeds: int,
    seed: int,
    where: str,
    *,
    progress: Show = False,
    say: Callable[[str], None],
) -> bool:
    """Train what is missing of a run; nothing where it is whole.

    **Arguments:**

    - `folder`: the run's.
    - `steps`, `seeds`, `seed`, `progress`: as for `agents.train`.
    - `where`: what the run is called in the line that `say` is given before it is trained.

    **Returns:**

    Whether it came to its end; `False` where it diverged, which `say` is told.

    **Raises:**

    `ValueError` for a run of another agent or seeds, or of more steps; `ScalarsError`, which is one
    too, where rows of its scalars are missing; `CheckpointError` where its checkpoint is damaged;
    and what `agents.train` raises.
    """
    done = done_of(agent, steps, folder)
    if done == iterations_of(steps, agent.steps_per_iteration):
        check_whole(folder, check_run(agent, folder, seeds, seed), done)
        read_arrays(folder / CHECKPOINT)  # which a disk may have lost since
    else:
        say(f"{where}: {steps:,} steps, {seeds} seeds")
        try:
            train(
                agent,
                steps=steps,
                seeds=seeds,
                seed=seed,
                out=folder,
                resume=(folder / CHECKPOINT).exists(),
                evaluate_every=0,
                progress=progress,
            )
        except TrainingDiverged as error:
            say(f"{where}: {error}")
            return False
    return True


def check_run(agent: AbstractAgent, folder: Path, seeds: int, seed: int) -> dict[str, Any]:
    """Return the configuration of a folder's run.

    **Raises:**

    `RunFolderError`, a `ValueError`, where it is of another agent or seeds.
    """
    stored = read_header(folder / CHECKPOINT).config
    asked = configuration(agent, seeds=seeds, seed=seed)
    check_folder(folder, stored, {**stored, **asked}, resume=True)
    return stored


def _tuned(
    experiment: Experiment, variant: str, out: Path, seeds: int, rows_for: Callable[..., list[Row]]
) -> dict[str, Any]:
    """The best candidate of a variant, on seeds that are not reported."""
    candidates = list(experiment.candidates())
    if len(candidates) == 1:
        return candidates[0]
    scores = []
    for number, candidate in enumerate(candidates):
        rows = []
        for environment in experiment.environments:
            folder = out / "tuning" / folder_name(environment) / folder_name(variant) / str(number)
            rows += rows_for(environment, variant, candidate, folder, seeds, TUNING)
        mean = np.mean([getattr(row, experiment.measure) for row in rows])
        scores.append(-mean if experiment.falls else mean)
    # Where each of them diverged it is the first, whose own run then says so.
    return candidates[int(np.argmax(np.nan_to_num(scores, nan=-np.inf)))]
