"""Where published code departs from its paper, its documentation or the right gradient.

`python -m benchmarks.differences --markdown`: a number for each, in seconds apiece on a CPU.
The page "Known differences" shows the table. Rows of packages that are not installed are left out.
"""

import importlib.metadata
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import tyro

from benchmarks import _differences_envs, _differences_memax, _differences_rules
from benchmarks._command import check_names, command
from benchmarks._measure import Output, Row

TABLES: dict[str, tuple[Callable[[], Row], ...]] = {
    "memax": _differences_memax.ROWS,
    "environments": _differences_envs.ROWS,
    "rules": _differences_rules.ROWS,
}
ROWS = {function.__name__: function for rows in TABLES.values() for function in rows}

QUICK = ("linear_attention", "repeat_previous", "chain_context", "time_index", "periods")


@dataclass(frozen=True)
class Options:
    """Which rows, and where to."""

    rows: tuple[str, ...] = tuple(ROWS)
    """Names of rows."""
    quick: bool = False
    """The five cheapest rows in place of `rows`, for tests."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


def _versioned(row: Row) -> Row:
    """With the version behind the name of a package that is installed."""
    try:
        return row | {"package": f"{row['package']} {importlib.metadata.version(row['package'])}"}
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return row  # a paper, or a repository with its commit


def _found(name: str) -> list[Row]:
    # Packages that are imported warn of their age, and rely on broadcasting by rank.
    with warnings.catch_warnings(), jax.numpy_rank_promotion("allow"):
        warnings.simplefilter("ignore")
        try:
            return [{"row": name, **_versioned(ROWS[name]())}]
        except ModuleNotFoundError as error:
            print(f"{name}: left out, {error}")
            return []


def run(options: Options) -> dict[str, list[Row]]:
    """Compute and print.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:** the rows of the tables `memax`, `environments` and `rules`.
    """
    check_names("rows", options.rows, ROWS)
    wanted = QUICK if options.quick else options.rows
    tables = {}
    for title, functions in TABLES.items():
        names = [function.__name__ for function in functions]
        tables[title] = [row for name in names if name in wanted for row in _found(name)]
        if tables[title]:
            options.output.table(f"Differences: {title}, JAX {jax.__version__}", tables[title])
    options.output.save(tables)
    return tables


if __name__ == "__main__":
    command(run, Options, __doc__)
