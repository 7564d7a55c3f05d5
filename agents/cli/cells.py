"""`python -m agents cells`."""

from dataclasses import dataclass

import equinox as eqx
from rich.console import Console

import zoo
from agents.cli.options import Command
from agents.cli.tables import table

_KINDS = (
    (zoo.AbstractTimeInvariantCell, "linear, constant"),
    (zoo.AbstractLinearCell, "linear, input-dependent"),
    (zoo.AbstractDiagonalCell, "nonlinear, diagonal"),
    (zoo.AbstractDenseCell, "nonlinear, dense"),
    (zoo.AbstractMemory, "of its own"),
)


@dataclass(frozen=True, kw_only=True)
class Cells(Command):
    """List the memory cells, their kind and their options."""

    def __call__(self, console: Console) -> None:
        rows = table(None, ["cell", "recurrence", "state", "options"])
        for name in zoo.names():
            kind, size = eqx.filter_eval_shape(_look, name)  # draws no parameters
            options = ", ".join(f"{key}={value!r}" for key, value in zoo.options(name).items())
            rows.add_row(name, kind, f"{size} per unit", options or "–")
        console.print(rows)


def _look(name: str) -> tuple[str, int]:
    """A cell's kind, and the numbers in its state for each unit."""
    cell = zoo.get(name, hidden=8)
    kind = next(words for kind, words in _KINDS if isinstance(cell, kind))
    return kind if cell.state_size else "none", cell.state_size // 8
