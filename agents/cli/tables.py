"""Tables on the terminal."""

from collections.abc import Sequence

import numpy as np
from rich.table import Table

from agents.running.curves import confidence_band


def table(title: str | None, columns: Sequence[str]) -> Table:
    """Return an empty table, whose first column is never broken."""
    made = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        made.add_column(column, overflow="fold", no_wrap=number == 0)
    return made


def interval(values: np.ndarray) -> str:
    """Write the mean and half width of the 95 % confidence interval over seeds."""
    mean, half = confidence_band(np.asarray(values, float)[None])
    return f"{mean[0]:.3f}" + ("" if np.isnan(half[0]) else f" ± {half[0]:.3f}")
