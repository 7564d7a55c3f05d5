"""Runs as arguments of commands: their folders, and what to call them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

Run = tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]]
Runs = tyro.conf.Positional[
    Annotated[
        tuple[Path, ...], tyro.conf.arg(metavar="RUN [RUN ...]", help_behavior_hint="(one or more)")
    ]
]


def labels(runs: Sequence[Path]) -> tuple[str, ...]:
    """Name runs by their folders, with the way there where two folders have one name."""
    names = tuple(run.resolve().name for run in runs)
    return names if len(set(names)) == len(names) else tuple(str(run) for run in runs)


def with_sweeps(folders: Sequence[Path], metric: str | None = None) -> tuple[Path, ...]:
    """Put in the place of a sweep's folder those of its runs that have a value of a metric.

    **Arguments:**

    - `folders`: of runs, and of sweeps.
    - `metric`: the metric; by default a return, of evaluations or of training.

    **Raises:**

    `ValueError` for a sweep of which none has; `ScalarsError` for a run that is damaged.
    """
    from agents.running.scalars import RETURNS, SCALARS, read_scalars
    from agents.sweeps.folder import RUNS, SWEEP, read_list

    found: list[Path] = []
    for folder in folders:
        if not (folder / SWEEP).exists():
            found.append(folder)
            continue
        runs = [folder / RUNS / name for name in read_list(folder)]
        wanted = RETURNS if metric is None else (metric,)
        written = {run: read_scalars(run) for run in runs if (run / SCALARS).exists()}
        begun = [run for run, values in written.items() if any(map(values.has, wanted))]
        if not begun:
            names = " or ".join(map(repr, wanted))
            raise ValueError(f"no run of the sweep in {folder} has a value of {names} yet")
        found += begun
    return tuple(found)
