"""Runs as arguments of commands: their folders, and what to call them."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from agents.running.scalars import Scalars

Run = tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]]
Runs = tyro.conf.Positional[
    Annotated[
        tuple[Path, ...], tyro.conf.arg(metavar="RUN [RUN ...]", help_behavior_hint="(one or more)")
    ]
]


def labels(runs: Sequence[Path]) -> tuple[str, ...]:
    """Name runs by their folders, with the way there where two folders have one name.

    **Raises:**

    `ValueError` for a folder that is given twice.
    """
    places = [run.resolve() for run in runs]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise ValueError(f"{runs[number]} is given twice")
    names = tuple(place.name for place in places)
    return names if len(set(names)) == len(names) else tuple(str(run) for run in runs)


def with_sweeps(
    folders: Sequence[Path], metric: str | None = None, others: Sequence[Path] = ()
) -> "tuple[list[tuple[Path, Scalars]], str]":
    """Put in the place of a sweep's folder those of its runs that have a value of a metric.

    **Arguments:**

    - `folders`: of runs, and of sweeps.
    - `metric`: the metric; by default that of `default_metric` for all runs that have a return of
      either kind.
    - `others`: folders of runs that are to have it as well.

    **Returns:**

    The runs' folders and what they have logged, and the metric.

    **Raises:**

    `ValueError` for a sweep of which none has it; `ScalarsError` for a run that is damaged.
    """
    from agents.running.scalars import RETURNS, SCALARS, default_metric, read_scalars
    from agents.sweeps.folder import RUNS, SWEEP, read_list

    wanted, found = RETURNS if metric is None else (metric,), []
    for folder in folders:
        if not (folder / SWEEP).exists():
            found.append([(folder, read_scalars(folder))])
            continue
        runs = [folder / RUNS / name for name in read_list(folder)]
        written = [(run, read_scalars(run)) for run in runs if (run / SCALARS).exists()]
        begun = [(run, values) for run, values in written if any(map(values.has, wanted))]
        if not begun:
            names = " or ".join(map(repr, wanted))
            raise ValueError(f"no run of the sweep in {folder} has a value of {names} yet")
        found.append(begun)
    if metric is None:
        logged = [values for runs in found for _, values in runs]
        metric = default_metric([*logged, *map(read_scalars, others)])
    # What none of them has is left to whoever reads it, who says so.
    having = ([run for run in runs if run[1].has(metric)] or runs for runs in found)
    return list(itertools.chain(*having)), metric
