"""`python -m agents watch`: learning curves in the terminal, while runs train."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from agents.cli.runs import Runs, labels
from agents.cli.seen import Seen, look
from agents.cli.words import Command, Count, Switch

if TYPE_CHECKING:
    from rich.text import Text

_MOST_WIDE, _MOST_HIGH = 120, 20


@dataclass(frozen=True, kw_only=True)
class Watch(Command):
    """Draw the learning curves of runs in the terminal, until the last of them ends."""

    runs: Runs
    """The runs' folders."""
    metric: str = "return"
    """What to draw: a column of scalars.csv."""
    smoothing: Count = 1
    """Average over so many points of each seed."""
    every: float = 2.0
    """Seconds between two pictures."""
    once: Switch = False
    """Draw what there is, and end."""

    def __call__(self, console: Console) -> None:
        from rich.console import Group
        from rich.live import Live

        if not 0 < self.every < float("inf"):
            raise ValueError(f"--every (={self.every}) must be a number of seconds above 0")
        if not self.runs:
            raise ValueError("a RUN must be given")
        with Live(console=console, auto_refresh=False) as live:
            while True:
                began = time.monotonic()
                seen = dict(zip(labels(self.runs), map(look, self.runs), strict=True))
                live.update(Group(*self._picture(seen, console)), refresh=True)
                if self.once or all(run.state in ("complete", "stopped") for run in seen.values()):
                    break
                # Where there is much to read, reading shall not take a core from what trains.
                time.sleep(max(self.every, 10 * (time.monotonic() - began)))
        if not console.is_terminal:  # there the last picture has no end of line
            console.print()

    def _picture(self, seen: Mapping[str, Seen], console: Console) -> "list[Text]":
        """The title, the curves, and a line for each run."""
        import numpy as np
        from rich.text import Text

        from agents.cli.plot import legend, plot
        from agents.running.outline import common, outline
        from agents.running.statistics import confidence_band, smooth

        about = str(common([outline(run.config) for run in seen.values()]))
        title = Text.assemble(
            (about, "bold"), "  " * bool(about), (self.metric, "dim"), no_wrap=True
        )
        curves, said, nothing = {}, [], (np.empty(0), np.empty(0))
        for label, run in seen.items():
            (curves[label], last), scalars = (nothing, "–"), run.scalars
            # What is not logged at all is an error, which `curve` tells.
            if scalars is not None and (
                self.metric not in scalars.metrics or scalars.has(self.metric)
            ):
                try:
                    steps, values = scalars.curve(self.metric)
                except ValueError as error:
                    raise ValueError(f"{label}: {error}") from None
                mean, _ = confidence_band(smooth(values, self.smoothing))
                curves[label], last = (steps, mean), f"{mean[-1]:.3f}"
            said.append((label, f"{last:>7}  {run.told()}"))
        height = max(8, min(_MOST_HIGH, console.height - len(seen) - 3))
        if not any(np.isfinite(mean).any() for _, mean in curves.values()):
            drawn = [Text(f"nothing to draw yet: no finite {self.metric}", style="dim")]
        else:
            drawn = plot(curves, width=min(_MOST_WIDE, console.width - 1), height=height)
        return [title, *drawn, *legend(said, console.width)]
