"""`python -m agents compare`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console

from agents.cli import runs as named
from agents.cli.words import Command, Count


@dataclass(frozen=True, kw_only=True)
class Compare(Command):
    """Draw several runs into one figure, a part for each environment, and print their final
    values; beside them the mean over seeds of the best point, and of the whole curve."""

    runs: named.Runs
    """The runs' folders."""
    out: Path = Path("comparison.png")
    """The figure to write."""
    metric: str | None = None
    """What to compare; the evaluation's return if all runs have it, else the rollouts'."""
    smoothing: Count = 1
    """Average over so many points of each seed."""
    statistic: Literal["mean", "median", "iqm"] = "mean"
    """Of the seeds: the mean with its interval by Student's t; the median or the interquartile mean
    with a bootstrap interval."""
    labels: tuple[str, ...] = ()
    """Names of the runs in the figure; their folders' by default."""
    title: str | None = None
    """Written above the figure; by default the environment and what else the runs share."""

    def __call__(self, console: Console) -> None:
        import numpy as np

        from agents.cli.tables import interval, table
        from agents.running.curves import learning_curve
        from agents.running.outline import by_environment
        from agents.running.scalars import default_metric, read_scalars
        from agents.running.statistics import smooth

        labels = self.labels or named.labels(self.runs)
        if len(set(labels)) != len(self.runs):
            raise ValueError(
                f"--labels ({', '.join(labels)}) must be one different name for each of the "
                f"{len(self.runs)} runs"
            )
        runs = dict(zip(labels, self.runs, strict=True))
        scalars = {label: read_scalars(folder) for label, folder in runs.items()}
        metric = self.metric or default_metric(list(scalars.values()))
        options = {"metric": metric, "smoothing": self.smoothing, "title": self.title}
        learning_curve(runs, self.out, **options)
        for environment, outlines in by_environment(runs).items():
            if environment:  # a table would break it where it is longer than the table is wide
                console.print(environment, style="bold", soft_wrap=True, markup=False)
            columns = ["run", "seeds", "steps", self.statistic, "min", "max", "best", "area"]
            rows = table(f"final {metric}", columns, narrow=True)
            for label in outlines:
                steps, values = scalars[label].curve(metric)
                final = smooth(values, self.smoothing)[-1]
                best, area = np.nanmax(values, axis=0).mean(), np.nanmean(values)
                numbers = (np.nanmin(final), np.nanmax(final), best, area)
                shown = interval(final, self.statistic), *(f"{x:.3f}" for x in numbers)
                rows.add_row(label, str(len(final)), f"{steps[-1]:,}", *shown)
            console.print(rows)
        console.print(f"figure: {self.out}", soft_wrap=True, highlight=False)
