"""What benchmarks of cells' scans have in common."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

from benchmarks._measure import Budget, Row, heading


def scans_of(cell: Any) -> tuple[Callable[[str], Callable[..., jax.Array]], Any]:
    """A cell's outputs over sequences side by side, by a method.

    **Arguments:**

    - `cell`: any cell.

    **Returns:**

    `(by, arrays)`: `by(method)` is a function of the cell's arrays, of inputs
    `[time, batch, features]` and of flags `[time, batch]`, or none.
    """
    arrays, static = eqx.partition(cell, eqx.is_array)

    def by(method: str) -> Callable[..., jax.Array]:
        def run(arrays, xs, begin=None):
            cell = eqx.combine(arrays, static)
            scan = lambda xs, begin: cell.scan(cell.init_state(), xs, begin, method=method)[1]  # noqa: E731
            return jax.vmap(scan, 1, 1)(xs, begin)

        return run

    return by, arrays


def tabulate(
    name: str, title: str, rows_for: Callable[..., list[Row]], options: Any, budget: Budget
) -> list[Row]:
    """Measure, print and save the rows of every cell and number of steps.

    **Arguments:**

    - `name`: of the table in the file.
    - `title`: of the table that is printed.
    - `rows_for`: `(cell, steps, options, budget) -> rows`.
    - `options`: with `cells`, `times`, `hidden`, `inputs`, `batch` and `output`.
    - `budget`: how long to measure.

    **Returns:**

    All rows.
    """
    cases = [(cell, time) for cell in options.cells for time in options.times]
    rows = [row for case in cases for row in rows_for(*case, options, budget)]
    sizes = f"{options.hidden} units, {options.inputs} inputs, batch {options.batch}"
    options.output.table(heading(f"{title}, {sizes}", budget=budget), rows)
    options.output.save({name: rows})
    return rows
