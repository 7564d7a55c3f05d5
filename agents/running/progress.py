"""Progress on the terminal."""

import time
from typing import Literal

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from agents.running.output import lasting_console

Show = bool | Literal["bar", "lines"]


def say(text: str, show: Show) -> None:
    """Print a line of text, where progress is shown at all."""
    if show:
        lasting_console(soft_wrap=True).print(text, markup=False, highlight=False)


class ProgressReport:
    """Progress on the terminal: a bar on a terminal, else a line every tenth of the way.

    Use it as a context manager.

    **Arguments:**

    - `total`, `start`: the number of iterations, and how many of them are done already.
    - `steps`: environment steps of one iteration, over all seeds.
    - `show`: `True` chooses by the terminal, `False` shows nothing; `"bar"` and `"lines"` force one
      form.
    - `console`: where to print.
    """

    def __init__(
        self,
        total: int,
        *,
        start: int = 0,
        steps: int,
        show: bool | Literal["bar", "lines"] = True,
        console: Console | None = None,
    ):
        self._total, self._start, self._steps = total, start, steps
        forced = True if show == "bar" else None
        self._console = console or lasting_console(force_terminal=forced)
        bar = show == "bar" or (show is True and self._console.is_terminal)
        self._lines = show == "lines" or (show is True and not bar)
        self._return, self._last = float("nan"), start
        self._began = time.perf_counter()
        self._bar = _bar(self._console) if bar else None
        if self._bar is not None:
            self._task = self._bar.add_task(
                "train", total=total, completed=start, score="–", speed="–"
            )

    def __enter__(self) -> "ProgressReport":
        self._began = time.perf_counter()
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, iteration: int, score: float) -> float:
        """Report an iteration with its mean return, and return the steps per second so far.

        If the return is NaN, the last one that was not is shown.
        """
        elapsed = max(time.perf_counter() - self._began, 1e-9)
        done = iteration - self._start
        speed = done * self._steps / elapsed
        self._return = self._return if np.isnan(score) else score
        score_text = "–" if np.isnan(self._return) else f"{self._return:.3f}"
        speed_text = f"{speed:,.0f}"
        if self._bar is not None:
            self._bar.update(self._task, completed=iteration, score=score_text, speed=speed_text)
        tenth, before = (10 * i // self._total for i in (iteration, self._last))
        first, self._last = self._last == self._start, iteration
        if self._lines and (tenth > before or first):
            left = elapsed / done * (self._total - iteration)
            self._console.print(
                f"{100 * iteration // self._total:3d} %  iteration {iteration}/{self._total}"
                f"  return {score_text}  {speed_text} steps/s  {_clock(left)} left",
                highlight=False,
            )
        return speed


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.percentage:3.0f} %"),
        BarColumn(bar_width=None),
        TextColumn("{task.completed}/{task.total}"),
        TextColumn("return {task.fields[score]}"),
        TextColumn("{task.fields[speed]} steps/s"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        expand=True,
    )


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
