"""`python -m agents compare`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from agents.cli import runs as named
from agents.cli.words import Command, Count, check_picture


@dataclass(frozen=True, kw_only=True)
class Compare(Command):
    """Draw several runs into one figure, a part for each environment, and print their final
    values; beside them the mean over seeds of the best point, and of the whole curve."""

    runs: named.Runs
    """The runs' folders; that of a sweep stands for all of its runs."""
    out: Path = Path("comparison.png")
    """The figure to write."""
    metric: str | None = None
    """What to compare; the evaluation's return if all runs have it, else the rollouts'."""
    smoothing: Count = 1
    """Average over so many points of each seed."""
    statistic: Literal["mean", "median", "iqm"] = "mean"
    """Of the seeds, in the table and for the gain: the mean with its interval by Student's t; the
    median or the interquartile mean with a bootstrap interval. The figure has means."""
    labels: tuple[str, ...] = ()
    """Names of the runs in the figure; their folders' by default."""
    title: str | None = None
    """Written above the figure; by default the environment and what else the runs share."""
    gain_from: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """The run of an agent without memory in the same environment: a memory gain of 0."""
    gain_to: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """The run of an agent in the environment's fully observed twin: a memory gain of 1."""

    def __call__(self, console: Console) -> None:
        import numpy as np

        from agents.cli.tables import decimals_of, fitted, interval, table
        from agents.running.curves import learning_curve
        from agents.running.outline import by_environment
        from agents.running.scalars import RETURNS
        from agents.running.statistics import last_known, smooth

        check_picture(self.out)
        ends = [run for run in (self.gain_from, self.gain_to) if run is not None]
        if len(ends) == 1:
            raise ValueError("--gain-from and --gain-to have a meaning only together")
        found, metric = named.with_sweeps(self.runs, self.metric, ends)
        folders = [folder for folder, _ in found]
        labels = self.labels or named.labels(folders)
        if not len(set(labels)) == len(labels) == len(folders):
            raise ValueError(
                f"--labels ({', '.join(labels)}) must be one different name for each of the "
                f"{len(folders)} runs"
            )
        runs = dict(zip(labels, folders, strict=True))
        scalars = {label: values for label, (_, values) in zip(labels, found, strict=True)}
        gains = self._gains(folders, metric)
        options = {"metric": metric, "smoothing": self.smoothing, "title": self.title}
        learning_curve(runs, self.out, **options)
        for environment, outlines in by_environment(runs).items():
            if environment:  # a table would break it where it is longer than the table is wide
                console.print(environment, style="bold", soft_wrap=True, markup=False)
            # Of a loss the largest is not the best.
            ranked = metric in RETURNS
            columns = ["run", "seeds", "steps", self.statistic, "min", "max"]
            columns += ["best"] * ranked + ["area"] + ["gain"] * bool(gains)
            rows = table(f"final {metric}", columns, narrow=True, numbers=True)
            for label in outlines:
                steps, values = scalars[label].curve(metric)
                final = smooth(values, self.smoothing)[-1]
                known = values[:, ~np.isnan(values).all(axis=0)]
                best = np.nanmax(known, axis=0).mean()
                area = np.nanmean(last_known(known), axis=0).mean()
                numbers = (np.nanmin(final), np.nanmax(final), *[best] * ranked, area)
                decimals = 3 if ranked else decimals_of(float(np.nanmean(final)))
                told = interval(final, self.statistic, decimals)
                shown = told, *(f"{x:.{decimals}f}" for x in numbers)
                shown += gains.get(runs[label], ())
                rows.add_row(label, str(known.shape[1]), f"{steps[-1]:,}", *shown)
            console.print(fitted(rows, console), crop=False)
        console.print(f"figure: {self.out}", soft_wrap=True, highlight=False)

    def _gains(self, runs: Sequence[Path], metric: str) -> dict[Path, tuple[str]]:
        """The memory gain of each run in words; nothing where none is asked for."""
        if self.gain_from is None or self.gain_to is None:
            return {}
        from agents.cli.tables import with_ends
        from agents.running.gain import memory_gains

        options = {"metric": metric, "smoothing": self.smoothing, "statistic": self.statistic}
        gains = memory_gains(runs, self.gain_from, self.gain_to, **options)
        return {run: (with_ends(*gain),) for run, gain in zip(runs, gains, strict=True)}
