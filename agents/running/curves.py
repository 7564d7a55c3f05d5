"""Learning curves, drawn with a confidence band over seeds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from agents.running.scalars import default_metric, read_scalars
from agents.running.statistics import confidence_band, smooth

# Okabe and Ito's palette, safe for the common kinds of color blindness; the styles tell runs
# apart once the colors repeat.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STYLES = ("-", "--", "-.", ":")
_LABELS = {
    "evaluation_return": "return per episode (evaluation)",
    "return": "return per episode (training)",
    "evaluation_length": "episode length (steps, evaluation)",
    "length": "episode length (steps, training)",
}


def learning_curve(
    runs: Mapping[str, str | Path],
    path: str | Path,
    *,
    metric: str | None = None,
    smoothing: int = 1,
    title: str | None = None,
) -> None:
    """Draw the learning curves of one or several runs into one picture.

    The line is the mean over seeds, the band its 95 % confidence interval by Student's
    t-distribution; a run of one seed has no band.

    **Arguments:**

    - `runs`: the runs' folders, by the label each gets.
    - `path`: the picture to write; its ending tells the format.
    - `metric`: what to draw; by default see `default_metric`.
    - `smoothing`: average each seed over so many measured points.
    - `title`: written above, if any.

    **Raises:**

    `ValueError` if a folder holds no run, or a run has no such metric.
    """
    if not runs:
        raise ValueError("there is no run to draw")
    scalars = {label: read_scalars(folder) for label, folder in runs.items()}
    metric = metric or default_metric(list(scalars.values()))
    figure = new_figure(7.0, 4.2)
    axes = figure.add_subplot()
    for number, (label, run) in enumerate(scalars.items()):
        steps, values = run.curve(metric)
        _draw(axes, number, label, steps, smooth(values, smoothing))
    _decorate(axes, metric, title)
    figure.savefig(str(path))


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that belongs to no window and no global state; sizes in inches."""
    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def look(number: int) -> dict[str, Any]:
    """Return color and style of a line, for matplotlib; different for each of the first 28."""
    color = _COLORS[number % len(_COLORS)]
    return {"color": color, "linestyle": _STYLES[number // len(_COLORS) % len(_STYLES)]}


def style_axes(axes: Axes, x: str, y: str) -> None:
    """Label axes with what they show, and give them the grid and frame of all pictures here."""
    axes.set_xlabel(x, fontsize=12)
    axes.set_ylabel(y, fontsize=12)
    axes.tick_params(labelsize=11)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _draw(axes: Axes, number: int, label: str, steps: np.ndarray, values: np.ndarray) -> None:
    shown = look(number)
    mean, half = confidence_band(values)
    count = values.shape[1]
    seeds = f"{count} seeds" if count > 1 else "1 seed"
    marker = "o" if len(steps) == 1 else None
    name = f"{label} ({seeds})"
    axes.plot(steps, mean, linewidth=2, label=name, marker=marker, **shown)
    if count > 1:
        color = shown["color"]
        axes.fill_between(steps, mean - half, mean + half, color=color, alpha=0.2, linewidth=0)


def _decorate(axes: Axes, metric: str, title: str | None) -> None:
    label = _LABELS.get(metric, metric.replace("_", " "))
    style_axes(axes, "environment steps (per seed)", label)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    banded = len(axes.collections) > 0
    axes.legend(
        loc="best",  # by name: as a default it warns on a machine that takes a second to find it
        fontsize=10,
        frameon=True,
        edgecolor="none",
        framealpha=0.8,
        title="mean and 95 % confidence band" if banded else None,
        title_fontsize=9,
        alignment="left",
    )
    if title:
        axes.set_title(title, fontsize=12)
