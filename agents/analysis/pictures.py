"""Pictures of what a memory remembers; see `agents.analysis`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

import zoo
from agents.analysis.recurrence import context_period, trace_durability
from agents.analysis.sensitivity import (
    Sensitivities,
    as_numbers,
    cumulative_sensitivity,
    relative_sensitivity,
    value_memory_length,
)
from agents.running.curves import (
    as_it_is,
    look,
    name_of_a_line,
    new_figure,
    style_axes,
    write_figure,
)
from agents.settings import check_kind
from zoo.parts.checks import check_sizes

_TRAINING = "time of the training"


def draw_sensitivity(
    sensitivities: Mapping[str, Sensitivities],
    path: str | Path | None = None,
    *,
    reward_memory_length: int | None = None,
    fraction: float = 0.9,
    title: str | None = None,
) -> Figure:
    """Draw how much a value depends on past observations: by age, and cumulated.

    **Arguments:**

    - `sensitivities`: by label, those of an agent's episodes; see `relative_sensitivity`.
    - `path`: the picture to write, if any; its ending tells the format.
    - `reward_memory_length`: of the environment, at least 1, drawn as a vertical line; see
      `value_memory_length`.
    - `fraction`: of the sensitivity, that makes the value memory length; marked by dots.
    - `title`: written above, if any.

    **Raises:**

    `ValueError` where there is nothing to draw, or for a length that is none; `TypeError` where
    there are no labels; and see `value_memory_length`.
    """
    labeled = "a dictionary, by label those of an agent's episodes"
    check_kind(Mapping, labeled, sensitivities=sensitivities)
    if not sensitivities:
        raise ValueError("`sensitivities` (={}) must hold at least one agent's.")
    if reward_memory_length is not None:
        check_sizes(reward_memory_length=reward_memory_length)
    figure = new_figure(10.0, 4.0)
    by_age, cumulated = figure.subplots(1, 2)
    for number, (label, values) in enumerate(sensitivities.items()):
        share, curve = relative_sensitivity(values), cumulative_sensitivity(values)
        length = value_memory_length(values, fraction)
        by_age.plot(np.arange(len(share)), share, linewidth=2, **look(number))
        name = name_of_a_line(f"{label}: {length} for {fraction:.0%}", 60)
        cumulated.plot(np.arange(len(curve)), curve, linewidth=2, label=name, **look(number))
        cumulated.plot([length], [curve[length]], "o", color=look(number)["color"])
    if reward_memory_length is not None:
        # The n newest observations are those of ages 0 to n - 1.
        by_age.axvline(reward_memory_length - 0.5, color="gray", linestyle=":")
        label = f"reward memory: {reward_memory_length}"
        cumulated.axvline(reward_memory_length, color="gray", linestyle=":", label=label)
    style_axes(by_age, "age of the observation (steps)", "share of the sensitivity of the value")
    style_axes(cumulated, "newest observations", "share of them together")
    by_age.set_ylim(bottom=0)
    cumulated.set_ylim(0, 1.05)
    cumulated.legend(
        loc="best", title="value memory length", fontsize=10, frameon=False, alignment="left"
    )
    return _finish(figure, path, title)


def draw_traces(
    cells: zoo.AbstractMemory | Sequence[zoo.AbstractMemory],
    path: str | Path | None = None,
    *,
    steps: Sequence[float | int] | None = None,
    beta: float = 0.01,
    title: str | None = None,
) -> Figure:
    """Draw trace durability and context period of Fast and Forgetful Memory over training.

    **Arguments:**

    - `cells`: one `zoo.FFM`, or the same at several times of the training.
    - `path`, `title`: see `draw_sensitivity`.
    - `steps`: the times, in environment steps; by default their numbers.
    - `beta`: see `trace_durability`.

    **Returns:**

    The figure: a line for each trace and each context.

    **Raises:**

    `ValueError` where there is nothing to draw, `steps` has another length or one is not finite;
    `TypeError` where they are no numbers.
    """
    cells = [cells] if isinstance(cells, zoo.AbstractMemory) else cells
    times, name = _times(cells, steps, "cells")
    figure = new_figure(10.0, 4.0)
    shown = (
        (trace_durability(cells, beta), f"trace durability (steps to {beta:.2g})"),
        (np.abs(context_period(cells)), "context period (steps)"),
    )
    for axes, (values, label) in zip(figure.subplots(1, 2), shown, strict=True):
        lines = values.reshape(len(times), -1)
        colors = _shades(np.arange(lines.shape[1]))
        for line, color in zip(lines.T, colors, strict=True):
            axes.plot(times, line, color=color, marker="o" if len(times) == 1 else None)
        style_axes(axes, name, label)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        _time_axis(axes, times, steps)
    return _finish(figure, path, title)


def draw_eigenvalues(
    values: np.ndarray,
    path: str | Path | None = None,
    *,
    steps: Sequence[float | int] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw eigenvalues of a recurrence in the complex plane, from dark to light over training.

    **Arguments:**

    - `values`: as `eigenvalues` returns them, shape `[n]` or `[times, n]`.
    - `path`, `title`: see `draw_sensitivity`.
    - `steps`: the times, in environment steps; by default their numbers.

    **Returns:**

    The figure, with the unit circle: what lies inside fades, what lies outside grows.

    **Raises:**

    `ValueError` where there is nothing to draw, `values` has another shape, `steps` another length
    or one of either is not finite; `TypeError` where they are no numbers.
    """
    if np.ndim(values) not in (1, 2):
        raise ValueError(f"`values` (shape {np.shape(values)}) must be [n] or [times, n].")
    values = _finite("values", np.atleast_2d(values), complex)
    times, name = _times(values, steps, "values")
    figure = new_figure(6.0, 5.0)
    axes = figure.add_subplot()
    angle = np.linspace(0, 2 * np.pi, 400)
    axes.plot(np.cos(angle), np.sin(angle), color="gray", linewidth=1)
    points = axes.scatter(
        np.real(values).ravel(),
        np.imag(values).ravel(),
        c=np.repeat(times, values.shape[1]),
        cmap="viridis",
        s=14,
        zorder=2,
    )
    style_axes(axes, "real part", "imaginary part")
    axes.set_aspect("equal")
    if len(times) > 1:
        bar = figure.colorbar(points, ax=axes, label=name)
        if steps is not None:
            bar.ax.yaxis.set_major_formatter(EngFormatter(sep=""))
    return _finish(figure, path, title)


def _times(rows, steps, name):
    """The times of a training, and what they are."""
    if not len(rows):
        raise ValueError(f"`{name}` (={rows!r}) must hold at least one time of the training.")
    if steps is None:
        return np.arange(len(rows)), _TRAINING
    if len(steps) != len(rows):
        raise ValueError(
            f"`steps` ({len(steps)} of them) must be as many as `{name}` ({len(rows)})."
        )
    return _finite("steps", steps, float), "environment steps"


def _finite(name, values, kind):
    found = as_numbers(name, values, kind)
    if wrong := np.count_nonzero(~np.isfinite(found)):
        raise ValueError(f"`{name}` must be finite, which {wrong} of {found.size} numbers are not.")
    return found


def _time_axis(axes: Axes, times: np.ndarray, steps: Sequence[float | int] | None) -> None:
    if steps is not None:
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    elif len(times) == 1:
        axes.set_xticks([])


def _shades(numbers: np.ndarray):
    return colormaps["viridis"](Normalize(0, max(1.0, 1.15 * numbers[-1]))(numbers))


def _finish(figure: Figure, path: str | Path | None, title: str | None) -> Figure:
    if title:
        figure.suptitle(as_it_is(title, 100), fontsize=12)
    if path is not None:
        write_figure(figure, path)
    return figure
