"""Tables on the terminal."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from agents.running.aggregates import OF_SEEDS, bootstrap
from agents.running.statistics import spread

LEAST_OF_A_NAME = 12  # characters in a line, where a table of names and numbers is too wide


def table(
    title: str | None, columns: Sequence[str], *, narrow: bool = False, numbers: bool = False
) -> Table:
    """Return an empty table, whose first column is never broken.

    **Arguments:**

    - `narrow`: without lines between columns, for what is to fit 80 characters.
    - `numbers`: all others are numbers: those are never broken, and the first where it has to be.
    """
    frame: Any = {"box": None, "padding": (0, 2, 0, 0), "pad_edge": False} if narrow else {}
    made = Table(title=title, title_justify="left", **frame)
    for number, column in enumerate(columns):
        made.add_column(column, overflow="fold", no_wrap=(number == 0) != numbers)
    return made


def fitted(rows: Table, console: Console) -> Table:
    """Break the names in a table of `numbers` as far as the console asks for.

    From twelve characters in a line on, the table stays wider than the console.
    """
    wide = Measurement.get(console, console.options.update(width=10_000), rows).maximum
    longest = max((cell_len(str(name)) for name in rows.columns[0].cells), default=0)
    least = wide - max(0, longest - LEAST_OF_A_NAME)
    if least > console.width:
        rows.width = least
    return rows


def decimals_of(value: float) -> int:
    """Return how many decimals show three digits of a number: at least 3, at most 9."""
    if not value or not np.isfinite(value):
        return 3
    return int(np.clip(2 - np.floor(np.log10(abs(value))), 3, 9))


def interval(values: np.ndarray, statistic: str = "mean", decimals: int = 3) -> str:
    """Write a statistic over seeds with its 95 % confidence interval.

    Of the mean, it is the half width by Student's t; of others, both ends by the bootstrap. Of two
    seeds, which make no interval worth the name, it is the mean and both values.

    **Arguments:**

    - `values`: one for each seed; NaN where a seed has none.
    - `statistic`: `"mean"`, `"median"` or `"iqm"`.
    - `decimals`: how many are written.
    """
    values = np.asarray(values, float)
    present = values[~np.isnan(values)]
    if statistic != "mean" and len(present) > 2:
        of_seeds = OF_SEEDS[statistic]
        ends = bootstrap(lambda scores: float(of_seeds(scores)), present[:, None])
        return with_ends(*ends, decimals=decimals)
    mean, low, high = (x[0] for x in spread(values[None]))
    if np.isnan(low):
        return f"{mean:.{decimals}f}"
    if len(present) == 2:
        return f"{mean:.{decimals}f} ({low:.{decimals}f} and {high:.{decimals}f})"
    return f"{mean:.{decimals}f} ± {high - mean:.{decimals}f}"


def with_ends(value: float, low: float, high: float, *, decimals: int = 3) -> str:
    """Write a value with both ends of its interval, which are left out where they are NaN."""
    shown, low_end, high_end = (f"{x:.{decimals}f}" for x in (value, low, high))
    return shown if np.isnan(low) else f"{shown} ({low_end} to {high_end})"
