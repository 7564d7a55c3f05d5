"""`python -m agents cells`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from agents.cli.words import Command


@dataclass(frozen=True, kw_only=True)
class Cells(Command):
    """List the memory cells, their kind and their options."""

    def __call__(self, console: Console) -> None:
        import equinox as eqx

        import zoo
        from agents.cli.tables import table

        rows = table(None, ["cell", "recurrence", "state", "options"], narrow=True)
        for name in zoo.names():
            kind, size = eqx.filter_eval_shape(_look, name)  # draws no parameters
            rows.add_row(name, kind, str(size), _written(zoo.options(name)) or "–")
        rows.caption, rows.caption_justify = "state: numbers for each unit", "left"
        console.print(rows)


def _written(options: Mapping[str, Any]) -> str:
    short = {name: f"{x:.4g}" if isinstance(x, float) else repr(x) for name, x in options.items()}
    return ", ".join(f"{name}={text}" for name, text in short.items())


def _look(name: str) -> tuple[str, int]:
    """A cell's kind, and the numbers in its state for each unit."""
    import zoo

    kinds = (
        (zoo.AbstractTimeInvariantCell, "linear, constant"),
        (zoo.AbstractLinearCell, "linear, input-dependent"),
        (zoo.AbstractDiagonalCell, "nonlinear, diagonal"),
        (zoo.AbstractDenseCell, "nonlinear, dense"),
        (zoo.AbstractMemory, "of its own"),
    )
    cell = zoo.get(name, hidden=8)
    kind = next(words for kind, words in kinds if isinstance(cell, kind))
    return kind if cell.state_size else "none", cell.state_size // 8
