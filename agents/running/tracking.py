"""The means over seeds of a run for trackers of other packages: Weights & Biases and trackio."""

import abc
import importlib
import uuid
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from agents.running.events import means_over_seeds
from agents.running.files import write_whole
from agents.running.folder import RUN_ID, TRACKED
from zoo.parts.checks import shown

Tracker = Literal["wandb", "trackio"]
_PROJECT = "trace-zoo"


class Tracking:
    """A run at a tracker, or at none: its configuration once, and a mean over seeds per metric.

    A tracker that fails ends no training: the first failure is a warning, and nothing more is sent.

    **Arguments:**

    - `tracker`: the name of its package, which is imported now; `None` tracks nothing.
    - `project`: what the run belongs to there, by default `"trace-zoo"`; one that is named warns
      where nothing is tracked.

    **Raises:**

    `ModuleNotFoundError` with the line that installs the package, if it is missing.
    """

    def __init__(self, tracker: Tracker | None, project: str | None):
        if tracker is None and project is not None:
            told = f"`track_project` (={project!r}) has no effect without `track`."
            warnings.warn(told, stacklevel=2)
        self._tracker, self._project = tracker, _PROJECT if project is None else project
        self._package = None if tracker is None else _package(tracker)
        self._run: _AbstractRun | None = None
        self._sent = 0

    def begin(self, folder: Path, config: Mapping[str, Any]) -> None:
        """Begin the run there, or go on with the one that the folder's file `run_id` names.

        What a run that was killed had sent of steps after its checkpoint is not sent again: the
        file `tracked_steps` tells up to where that is.
        """
        if self._tracker is None:
            return
        kind, self._folder = _KINDS[self._tracker], folder

        def begin() -> None:
            sent, name = _said(folder / TRACKED), folder.resolve().name
            if not (sent or "0").isdecimal():
                raise ValueError(f"{folder / TRACKED} (={shown(sent)}) is no number of steps")
            self._sent = int(sent or 0)
            self._run = kind(self._package, self._project, name, _identity(folder), folder, config)

        self._surviving(begin)

    def write(self, env_steps: int, metrics: Mapping[str, np.ndarray], **shared: float) -> None:
        """Send the scalars of one iteration; those that are not numbers are left out.

        **Arguments:**

        - `env_steps`: environment steps so far, for each seed: the horizontal axis.
        - `metrics`: arrays over seeds.
        - `shared`: scalars of the run as a whole, such as its speed.
        """
        run = self._run
        if run is not None and env_steps > self._sent:
            scalars = means_over_seeds(metrics) | shared
            finite = {name: float(x) for name, x in scalars.items() if np.isfinite(x)}

            def log() -> None:
                run.log(finite, env_steps)
                (self._folder / TRACKED).write_text(f"{env_steps}\n")

            self._surviving(log)

    def close(self, *, failed: bool = False) -> None:
        """End the run there; `failed` says that the training has not come to its end."""
        run = self._run
        if run is not None:
            self._surviving(lambda: run.finish(failed))
            self._run = None

    def _surviving(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:  # anything: their networks, disks and versions are not ours
            self._run = None
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            warnings.warn(
                f"{self._tracker} has failed and gets no more of {self._folder}, whose training "
                f"goes on: {what}",
                stacklevel=2,
            )


class _AbstractRun(abc.ABC):
    """A run that is open at a tracker.

    **Arguments:**

    - `package`: the tracker's package.
    - `identity`: what tells this run from others of its name, also when it is resumed.
    - `folder`: for files that the package writes.
    """

    @abc.abstractmethod
    def __init__(
        self,
        package: Any,
        project: str,
        name: str,
        identity: str,
        folder: Path,
        config: Mapping[str, Any],
    ): ...

    @abc.abstractmethod
    def log(self, scalars: Mapping[str, float], env_steps: int) -> None: ...

    @abc.abstractmethod
    def finish(self, failed: bool) -> None: ...


class _WandbRun(_AbstractRun):
    def __init__(self, package, project, name, identity, folder, config):
        self._run = package.init(
            project=project,
            name=name,
            id=identity,
            resume="allow",
            dir=str(folder),
            config=dict(config),
            allow_val_change=True,  # on resuming, `steps` may be larger
            reinit="create_new",  # a run that the caller has open stays the caller's
        )

    def log(self, scalars, env_steps):
        self._run.log(dict(scalars), step=env_steps)

    def finish(self, failed):
        self._run.finish(exit_code=int(failed))


class _TrackioRun(_AbstractRun):
    def __init__(self, package, project, name, identity, folder, config):
        # Its files are in `TRACKIO_DIR`, and it knows runs by their names alone.
        self._run = package.init(
            project=project, name=f"{name}-{identity}", resume="allow", config=dict(config)
        )

    def log(self, scalars, env_steps):
        self._run.log(dict(scalars), step=env_steps)

    def finish(self, failed):
        self._run.finish()


_KINDS: dict[str, type[_AbstractRun]] = {"wandb": _WandbRun, "trackio": _TrackioRun}


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(
            f"`track` (={name!r}) needs the package {name}: pip install 'trace-zoo[{name}]'",
            name=name,
        ) from None


def _identity(folder: Path) -> str:
    """The run's name among all runs, kept in its folder from the first time on."""
    path = folder / RUN_ID
    if kept := _said(path):
        return kept
    made = uuid.uuid4().hex[:12]
    write_whole(path, f"{made}\n".encode())
    return made


def _said(path: Path) -> str:
    """What a file says; nothing where there is none."""
    try:
        return path.read_text("utf-8").strip() if path.exists() else ""
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text") from None
