"""The runs of a sweep, checked before any of them begins."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import tyro

from agents.cli.train import RunOptions, agent_of, train_command
from agents.cli.words import early, in_flags
from agents.sweeps.grid import Grid, names_in, read_axes, read_grid, word_of
from agents.sweeps.job import Job

if TYPE_CHECKING:
    from agents.agent import AbstractAgent


def plan(
    file: Path | None, axes: Sequence[str], shared: Sequence[str], out: Path
) -> dict[Job, bool]:
    """Make every run of a grid, and tell of each whether it is complete already.

    **Arguments:**

    - `file`: with settings and a grid.
    - `axes`: other ones of the grid, as `NAME=VALUE,VALUE`; they take the place of the file's.
    - `shared`: words of `train` for all runs; they take the place of the file's settings.
    - `out`: the sweep's folder.

    **Raises:**

    `ValueError` naming what is wrong, and the run where it is one's.
    """
    read = read_grid(file) if file is not None else Grid({}, {})
    grid, typed = Grid(read.settings, {**read.axes, **read_axes(axes)}), set(names_in(shared))
    _check_names(grid, typed)
    fixed = {name: text for name, text in grid.settings.items() if name not in typed}
    jobs = {}
    for name, point in grid.combinations():
        try:
            words = _words(fixed | point, shared)
        except (ValueError, ModuleNotFoundError) as error:  # of an algorithm, or of its preset
            raise _refused(name, in_flags(str(error), None)) from error
        job = Job(name, (*words, *shared), out.resolve(), Path.cwd())
        jobs[job] = _checked(job)
    return jobs


def _words(settings: dict[str, str], shared: Sequence[str]) -> list[str]:
    plain = [word_of(name, text, switch=None) for name, text in settings.items()]
    choices = _true_or_false(_train_command([*plain, *shared]))
    words = []
    for name, text in settings.items():
        if name in choices and choices[name] is None and text.lower() in ("true", "false"):
            text = text.capitalize()  # as the command line has it, beside None
        words.append(word_of(name, text, switch=choices.get(name)))
    return [word for word in words if word]


def _check_names(grid: Grid, typed: set[str]) -> None:
    """Refuse what a sweep decides by itself, and what is both in the grid and fixed."""
    for name in (*grid.settings, *grid.axes, *typed):
        if name in ("out", "resume", "drop_scalars"):
            raise ValueError(
                f"{_flag(name)} is no setting of a sweep, which decides it for each run"
            )
        if name in ("processes", "process", "coordinator"):
            raise ValueError(f"{_flag(name)} is no setting of a sweep, whose runs are one process")
    if "import" in (*grid.settings, *grid.axes):
        raise ValueError("--import is no setting of a grid: give it with the command")
    for name in grid.axes:
        if name in typed or name in grid.settings:
            raise ValueError(f"{_flag(name)} is in the grid and is given for all runs too")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _train_command(words: Sequence[str]) -> type:
    told = early(words)
    return train_command(told.algorithm, told.preset)


def _true_or_false(kind: type) -> dict[str, bool | None]:
    """The options of a command that are true or false, those of its parts too.

    **Returns:**

    By name the default of those that take no value, and `None` for those that may be neither.
    """
    found: dict[str, bool | None] = {}
    for field in dataclasses.fields(kind):
        annotation: Any = field.type
        while hasattr(annotation, "__metadata__"):
            annotation = annotation.__origin__
        if annotation is bool:
            found[field.name] = field.default is True
        elif bool in get_args(annotation):
            found[field.name] = None
        elif dataclasses.is_dataclass(annotation):
            found |= _true_or_false(annotation)  # pyright: ignore[reportArgumentType]
    return found


def _checked(job: Job) -> bool:
    """Check the settings of a run, and what its folder holds; tell whether there is nothing to do.

    **Raises:**

    `ValueError` naming the run and what is wrong.
    """
    from agents.algorithms import agent_class

    words = [*job.words, "--out", str(job.folder)]
    try:
        command: Any = tyro.cli(
            _train_command(words),
            prog="python -m agents train",
            args=words,
            config=(tyro.conf.OmitArgPrefixes,),
        )
    except SystemExit:
        raise ValueError(f"nothing was begun: {job.name} is no command of train") from None
    try:
        agent = agent_of(agent_class(command.algorithm), command)
        return _holds(job.folder, agent, command.running)
    except (ValueError, ModuleNotFoundError) as error:
        raise _refused(job.name, in_flags(str(error), command)) from error


def _refused(name: str, told: str) -> ValueError:
    return ValueError(f"nothing was begun: {name}: {told}")


def _holds(folder: Path, agent: "AbstractAgent", run: RunOptions) -> bool:
    """Whether a folder holds this run, complete.

    **Raises:**

    `RunFolderError` if it holds another one.
    """
    from agents.algorithms import configuration
    from agents.envs.wrappers.base import runs_on_the_host
    from agents.learning.schedules import iterations_of
    from agents.running.checkpoint import CheckpointError, differences, progress_of, read_header
    from agents.running.errors import CANNOT_GO_BACK
    from agents.running.folder import CHECKPOINT, PICTURE, RunFolderError
    from agents.running.scalars import check_whole, default_metric, read_scalars
    from agents.running.train import done_of

    _check_run(agent, run)
    path = folder / CHECKPOINT
    if not path.exists():
        return False
    try:
        header = read_header(path)
        progress_of(path, header.progress)
    except CheckpointError:
        return False  # the run itself says what is wrong with it, and the others go on
    wanted = configuration(agent, seeds=run.seeds, seed=run.seed)
    for name in ("evaluate_every", "evaluation_episodes", "log_every"):
        if (value := getattr(run, name)) is not None:
            wanted[name] = value
    differing = differences(header.config, {**header.config, **wanted})
    if differing:
        listed = "\n".join(f"  {line}" for line in differing)
        raise RunFolderError(f"{folder} holds a run of other settings:\n{listed}")
    done = done_of(agent, run.steps, folder)
    if done < iterations_of(run.steps, agent.steps_per_iteration):
        if runs_on_the_host(agent.environment[0]):
            raise RunFolderError(
                f"{folder} holds a run that did not come to its end. {CANNOT_GO_BACK} Remove the "
                "folder to begin it anew."
            )
        return False
    try:
        check_whole(folder, header.config, done)
    except ValueError:
        return False  # so does this
    # The picture is the last file that a run writes, where there is anything to draw.
    scalars = read_scalars(folder)
    return (folder / PICTURE).exists() or not scalars.has(default_metric([scalars]))


def _check_run(agent: "AbstractAgent", run: RunOptions) -> None:
    """Check how a run is trained as `agents.train` will, but for the devices where it will be.

    How many there are is known there; whether their number splits anything, here.

    **Raises:**

    `ValueError` for a setting that breaks its rule, `ModuleNotFoundError` for a package that one
    needs.
    """
    from agents.envs.wrappers.base import check_end
    from agents.running.devices import to_split
    from agents.running.shards import orbax
    from agents.running.tracking import Tracking
    from agents.running.train import train
    from zoo.annotations import check_given

    names = [f.name for f in dataclasses.fields(run) if f.name != "progress"]  # which has its words
    check_given(train, {name: getattr(run, name) for name in names})
    Tracking(run.track, run.track_project)
    if run.evaluate_every != 0:
        check_end(agent.environment[0])
    if run.devices not in (None, "all"):
        to_split(run.devices, agent, seeds=run.seeds)
    if run.checkpoints == "sharded":
        orbax()
