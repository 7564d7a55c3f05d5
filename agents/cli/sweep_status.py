"""`python -m agents sweep status`."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import tyro
from rich.console import Console

from agents.cli.words import Command, Switch, early, parse_count

if TYPE_CHECKING:
    from rich.console import Group

Folder = tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]


@dataclass(frozen=True, kw_only=True)
class SweepStatus(Command):
    """Show how far the runs of a sweep are, until none of them is being trained."""

    folder: Folder
    """The sweep's folder."""
    metric: str = "return"
    """What to show of each run: a column of scalars.csv, the mean over its seeds."""
    every: float = 2.0
    """Seconds between two tables."""
    once: Switch = False
    """Show what there is, and end."""

    def __call__(self, console: Console) -> None:
        from rich.live import Live

        from agents.running.folder import has_writer

        if not 0 < self.every < float("inf"):
            raise ValueError(f"--every (={self.every}) must be a number of seconds above 0")
        seen: Mapping[str, _Row] = {}
        with Live(console=console, auto_refresh=False) as live:
            while True:
                began = time.monotonic()
                # In this order: what ends in the meantime is seen as it is at its end.
                goes_on = has_writer(self.folder)
                seen = _look(self.folder, self.metric, seen)
                logged = {name: None for run in seen.values() for name in run.metrics}
                if logged and self.metric not in logged:
                    raise ValueError(
                        f"--metric (={self.metric!r}) must be one of {', '.join(logged)}"
                    )
                live.update(_drawn(seen, self.metric, console), refresh=True)
                trained = any(run.state in ("compiling", "training") for run in seen.values())
                if self.once or not (goes_on or trained):
                    break
                # Where there is much to read, reading shall not take a core from what trains.
                time.sleep(max(self.every, 10 * (time.monotonic() - began)))
        if not console.is_terminal:  # there the last table has no end of line
            console.print()


class _Row(NamedTuple):
    """What the table says of a run; steps are those of each seed."""

    state: str
    steps: int = 0
    planned: int | None = None
    value: float = float("nan")
    begun: int | None = None  # when its last training began, in nanoseconds
    metrics: tuple[str, ...] = ()  # the names of those that are logged


def _look(folder: Path, metric: str, before: Mapping[str, _Row]) -> dict[str, _Row]:
    """Look at all runs of a sweep, but not again at those that are complete as they were.

    **Raises:**

    `ValueError` if the folder holds no sweep.
    """
    from agents.sweeps.folder import read_list

    seen = {}
    for name, words in read_list(folder).items():
        row = before.get(name)
        if row is None or row.state != "complete" or row.begun != _begun(folder, name):
            row = _row(folder, name, metric, words)
        seen[name] = row
    return seen


def _begun(folder: Path, name: str) -> int | None:
    """When the last training of a run began: that is when its configuration is written."""
    from agents.running.folder import CONFIG
    from agents.sweeps.folder import RUNS

    try:
        return (folder / RUNS / name / CONFIG).stat().st_mtime_ns
    except OSError:
        return None


def _row(folder: Path, name: str, metric: str, words: Sequence[str]) -> _Row:
    from agents.cli.seen import look
    from agents.running.events import mean_over_seeds
    from agents.running.scalars import ScalarsError
    from agents.sweeps.folder import RUNS, exit_code
    from agents.sweeps.job import problem_of

    code, begun = exit_code(folder, name), _begun(folder, name)
    try:
        run = look(folder / RUNS / name)
    except ScalarsError:
        return _Row("damaged")
    except ValueError:  # there is nothing to read yet
        return _Row("waiting" if code is None else problem_of(code) or "waiting")
    state = run.state
    if state in ("stopped", "complete") and code is not None:
        state = problem_of(code) or state  # also where all that is missing is the picture
    planned = run.config.get("steps")
    planned = planned if isinstance(planned, int) else None
    asked = parse_count(early(words).steps or "0")
    if planned is not None and planned < asked:
        # The sweep was begun again with more steps, and this run has not gone on yet.
        planned, state = asked, "waiting" if state == "complete" else state
    if run.scalars is None:
        return _Row(state, 0, planned)
    try:
        value = mean_over_seeds(run.scalars.last(metric))
    except ValueError:  # it has no value of the metric yet
        value = float("nan")
    steps, metrics = int(run.scalars.env_steps[-1]), tuple(run.scalars.metrics)
    return _Row(state, steps, planned, value, begun, metrics)


def _drawn(seen: Mapping[str, _Row], metric: str, console: Console) -> "Group":
    from rich.console import Group
    from rich.text import Text

    from agents.cli.tables import fitted, table

    columns = ["run", "state", "steps", "", metric]
    drawn = table(None, columns, narrow=True, numbers=True)
    for name, row in seen.items():
        share = f"{100 * row.steps // row.planned} %" if row.planned else ""
        value = "–" if row.value != row.value else f"{row.value:.3f}"
        drawn.add_row(name, row.state, f"{row.steps:,}" if row.steps else "–", share, value)
    states = Counter(row.state for row in seen.values())
    told = ", ".join(f"{count} {state}" for state, count in states.items())
    return Group(fitted(drawn, console), Text(told))
