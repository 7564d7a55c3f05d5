"""Learning curves, drawn with a band over seeds."""

import io
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from agents.running.files import write_whole
from agents.running.outline import by_environment, common
from agents.running.scalars import Scalars, default_metric, read_scalars
from agents.running.statistics import apart, smooth, spread

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
_WIDTH, _HEIGHT = 7.0, 4.2  # of a picture, or of each environment's part of it, in inches
_INSIDE = 4  # the names of more would stand on the curves
_BESIDE = 3.0  # inches that a part is wider where names stand beside it
_ENTRY, _LINE = 0.21, 0.17  # inches of a name among the names, and of each line more
_NAME, _TITLE = 48, 64  # characters of a line, which a longer name or title is broken into


def learning_curve(
    runs: Mapping[str, str | Path],
    path: str | Path,
    *,
    metric: str | None = None,
    smoothing: int | None = 1,
    title: str | None = None,
    together: bool = False,
) -> None:
    """Draw the learning curves of one or several runs into one picture.

    The line is the mean over seeds. The band is its 95 % confidence interval by Student's
    t-distribution; of two seeds it is what lies between them, and of one there is none. The axis
    shows all seeds, and of a band that reaches further, what lies there. Each environment has a
    part of the picture.

    **Arguments:**

    - `runs`: the runs' folders, by the label each gets.
    - `path`: the picture to write; its ending tells the format.
    - `metric`: what to draw; by default see `default_metric`.
    - `smoothing`: average each seed over so many measured points; `None` for a fiftieth of them.
    - `title`: written above; by default the environment, and memory and gradient where all runs in
        it have the same.
    - `together`: whether all runs are in one part, such as where options of the environment are
        what is compared.

    **Raises:**

    `ValueError` if a folder holds no run, or a run has no such metric.
    """
    if not runs:
        raise ValueError("there is no run to draw")
    scalars = {label: read_scalars(folder) for label, folder in runs.items()}
    metric = metric or default_metric(list(scalars.values()))
    groups = by_environment(runs)
    if together:
        outlines = {label: about for group in groups.values() for label, about in group.items()}
        groups = {"": {label: outlines[label] for label in runs}}
    beside = any(len(outlines) > _INSIDE for outlines in groups.values())
    height = max(_height(outlines) if beside else _HEIGHT for outlines in groups.values())
    figure = new_figure((_WIDTH + _BESIDE * beside) * len(groups), height)
    parts = figure.subplots(1, len(groups), squeeze=False)[0]
    looks = {label: look(number) for number, label in enumerate(runs)}
    for axes, outlines in zip(parts, groups.values(), strict=True):
        drawn = [
            _draw(axes, label, scalars[label], metric, smoothing, looks[label])
            for label in outlines
        ]
        above = str(common(list(outlines.values())))
        _decorate(axes, metric, above if title is None or len(groups) > 1 else title, drawn)
    if title and len(groups) > 1:
        figure.suptitle(title, fontsize=13)
    write_figure(figure, path)


def write_figure(figure: Figure, path: str | Path) -> None:
    """Write a picture whole or not at all, of the kind that its name ends in; else a PNG."""
    picture = io.BytesIO()
    figure.savefig(picture, format=Path(path).suffix.removeprefix(".") or "png")
    write_whole(path, picture.getvalue())


def _height(labels: Iterable[str]) -> float:
    """The height of a part beside which the names of all runs have room."""
    lines = [_name(label, 10).count("\n") for label in labels]
    return max(_HEIGHT, _ENTRY * (len(lines) + 3) + _LINE * sum(lines))


def _name(label: str, seeds: int) -> str:
    return name_of_a_line(f"{label} ({seeds} seed{'s' * (seeds > 1)})", _NAME)


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


def _draw(
    axes: Axes,
    label: str,
    run: Scalars,
    metric: str,
    smoothing: int | None,
    shown: Mapping[str, Any],
) -> tuple[np.ndarray, float, float]:
    """Draw one run; of how many seeds at each point, and the least and greatest of their values."""
    try:
        steps, values = run.curve(metric)
    except ValueError as error:
        raise ValueError(f"{label}: {error}") from None
    values = smooth(values, max(1, len(steps) // 50) if smoothing is None else smoothing)
    mean, low, high = spread(values)
    counts = np.count_nonzero(~np.isnan(values), axis=1)
    most = int(counts.max())
    marker = "o" if len(steps) == 1 else None
    axes.plot(steps, mean, linewidth=2, label=_name(label, most), marker=marker, **shown)
    if most > 1:
        axes.fill_between(steps, low, high, color=shown["color"], alpha=0.2, linewidth=0)
    return counts, float(np.nanmin(values)), float(np.nanmax(values))


def _decorate(
    axes: Axes, metric: str, title: str, drawn: Sequence[tuple[np.ndarray, float, float]]
) -> None:
    label = _LABELS.get(metric, metric.replace("_", " "))
    style_axes(axes, "environment steps (per seed)", label)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    counts, least, most = zip(*drawn, strict=True)
    # Every seed is seen, and no band rules the axis: that of three seeds, of which none need lie
    # far from the others, is as wide as five standard deviations.
    low, high = apart(min(least), max(most))
    margin = 0.05 * (high - low)
    axes.set_ylim(low - margin, high + margin)
    of_points = np.concatenate(counts)
    kinds = ["95 % confidence band"] * bool((of_points > 2).any())
    kinds += ["range of two seeds"] * bool((of_points == 2).any())
    # "best" by name: as a default it warns on a machine that takes a second to find it.
    place: dict[str, Any] = {"loc": "best"}
    if beside := len(drawn) > _INSIDE:
        place = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
    axes.legend(
        **place,
        fontsize=10,
        frameon=True,
        edgecolor="none",
        framealpha=0.8,
        title=f"mean and {', or '.join(kinds)}" if kinds else None,
        title_fontsize=9,
        alignment="left",
    )
    axes.set_title(as_it_is(title, _NAME if beside else _TITLE), fontsize=12)


def as_it_is(text: str, width: int) -> str:
    """A text in lines for matplotlib, which reads what stands between dollars as a formula."""
    return textwrap.fill(text, width, replace_whitespace=False).replace("$", r"\$")


def name_of_a_line(text: str, width: int) -> str:
    """A name in lines for matplotlib's legend, which hides those that begin with a line."""
    return as_it_is(" " * text.startswith("_") + text, width)
