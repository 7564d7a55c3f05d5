"""What was checked of a memory, with the number for each."""

import math
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text


class ProofError(ValueError):
    """A memory breaks a rule; `report` has the numbers of all.

    - `report`: the `zoo.Report`.
    """

    def __init__(self, report: "Report"):
        """`report`: one in which a check failed."""
        self.report = report
        failed = [check for check in report.checks if not check.passed]
        first, others = failed[0], len(failed) - 1
        more = f" ({others} more in its table, `report`.)" if others else ""
        super().__init__(f"{report.name}: {first.sentence()}{more}")

    def __reduce__(self):
        """As exceptions are taken apart, it would be made again of its text."""
        return ProofError, (self.report,)


@dataclass(frozen=True)
class Check:
    """One invariant of one memory.

    - `invariant`: what all memories owe.
    - `what`: what was compared.
    - `number`: how far it is off, relative to the largest value; `None` where it could not be run.
    - `where`: the parameter, or the part of the state, that is off the most.
    - `limit`: the largest number that is allowed.
    - `rule`: what should have been.
    """

    invariant: str
    what: str
    number: float | None
    where: str = ""
    limit: float = 1e-9
    rule: str = ""

    @property
    def passed(self) -> bool:
        """Whether the number is within the limit."""
        return self.number is not None and self.number <= self.limit

    def worse(self, other: "Check | None") -> "Check":
        """Choose, of two checks of the same, the one with the larger number, or none, or NaN."""
        return self if other is None or self._badness > other._badness else other

    @property
    def _badness(self) -> tuple[bool, float]:
        if self.number is None:
            return True, 0.0
        return False, float("inf") if self.number != self.number else self.number

    def sentence(self) -> str:
        """Say what is off, where, by how much, and the rule."""
        where = f"`{self.where}`: " if self.where else ""
        off = "" if self.number is None else f" is off by {self.number:.2g}"
        return f"{where}{self.invariant}, {self.what}{off}: {self.rule}."


@dataclass(frozen=True)
class Report:
    """What `zoo.prove` found: one `Check` after another; `str()` is its table.

    - `name`: of the memory.
    - `checks`: those that apply to it, in the order in which they explain each other.
    """

    name: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether all of them hold."""
        return all(check.passed for check in self.checks)

    def worst(self) -> dict[str, float]:
        """The largest number of each invariant."""
        out: dict[str, float] = {}
        for check in self.checks:
            number = math.inf if check.number is None else check.number
            out[check.invariant] = max(out.get(check.invariant, 0.0), number)
        return out

    def table(self) -> Table:
        """The table, for `rich`."""
        table = Table(title=Text(self.name), title_justify="left")
        for column in ("", "invariant", "what", "off by", "at most", "where"):
            table.add_column(column, justify="right" if column in ("off by", "at most") else "left")
        for check in self.checks:
            number = "not run" if check.number is None else f"{check.number:.1e}"
            table.add_row(
                "ok" if check.passed else "FAILS",
                check.invariant,
                check.what,
                number,
                f"{check.limit:.0e}" if check.limit else "0",
                Text(check.where if check.passed else f"{check.where} ({check.rule})"),
                style=None if check.passed else "red",
            )
        return table

    def __str__(self) -> str:
        """The table as text."""
        console = Console(width=140, color_system=None)
        with console.capture() as capture:
            console.print(self.table())
        return capture.get()
