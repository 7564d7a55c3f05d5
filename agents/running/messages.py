"""What devices say to each other in a compiled program, and whether in one order everywhere.

Between processes of CPUs a message has no name: the sum that one process waits for first has to be
the first of the others too. XLA begins the operations of a sequence in the order of the sequence,
and each is over when the next one begins. A loop or a branch with such operations inside, however,
may by XLA's source be left while it still runs, and what comes next does not wait for it, unless it
needs its results: what only shares the way of speaking waits until the other has begun, not ended.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import jax

_BYTES = {"pred": 1, "bf16": 2, "c64": 8, "c128": 16}
_KINDS = (
    "all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute|collective-broadcast"
    "|ragged-all-to-all"
)
_COLLECTIVE = re.compile(rf" = (.*?) ({_KINDS})(?:-start)?\(")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
_CALLED = re.compile(r"(?:calls|to_apply|body|condition|\w+_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"(?:branch_computations|called_computations)=\{([^}]*)\}")
_TRIPS = re.compile(r'known_trip_count":\{"n":"(\d+)"')
_NAME = re.compile(r"%([\w.\-]+)")


@dataclass(frozen=True)
class Collective:
    """An operation between devices: its kind, how often it happens (infinitely often where the
    program does not say), and the bytes of each time."""

    kind: str
    times: float
    size: int


def collectives(program: jax.stages.Compiled) -> list[Collective]:
    """List the operations between devices in a compiled program."""
    computations, entry = _computations(program)

    def walk(name: str, times: float) -> Iterator[Collective]:
        for line in computations.get(name, ()):
            if found := _COLLECTIVE.search(line):
                yield Collective(found[2], times, _size(found[1]))
                continue
            trips = _TRIPS.search(line)
            inside = float(trips[1]) if trips else math.inf if " while(" in line else 1.0
            for one in _called(line):
                yield from walk(one, times * inside)

    return list(walk(entry, 1.0))


def unordered(program: jax.stages.Compiled) -> list[tuple[str, str]]:
    """List what could take each other's messages between processes of CPUs.

    **Returns:**

    Names of a loop or branch with operations between devices, and of what has the next ones and
    does not need its results.
    """
    computations, _ = _computations(program)
    known: dict[str, bool] = {}

    def speaks(name: str) -> bool:
        if name not in known:
            known[name] = any(map(heard, computations.get(name, ())))
        return known[name]

    def heard(line: str) -> bool:
        return bool(_COLLECTIVE.search(line)) or any(map(speaks, _called(line)))

    found = []
    for lines in computations.values():
        # Lines are in the order in which XLA begins them, arguments before what needs them.
        last, needs = None, set[str]()  # what spoke last, and all that waits for it
        for line in lines:
            if " = " not in line:
                continue
            name, *arguments = _NAME.findall(line)
            waits = not needs.isdisjoint(arguments)
            if heard(line):
                if last is not None and not waits:
                    found.append((last, name))
                inside = not _COLLECTIVE.search(line)
                last, needs = (name, {name}) if inside else (None, set())
            elif waits:
                needs.add(name)
    return found


def check_order(program: jax.stages.Compiled) -> None:
    """Refuse a program in which devices could take each other's messages.

    **Raises:**

    `ValueError`, on CPUs only: other devices have a queue each, which keeps the order.
    """
    found = unordered(program) if jax.default_backend() == "cpu" else []
    if found:
        inside, after = found[0]
        raise ValueError(
            "this run's environments cannot be split between processes of CPUs: in its program "
            f"{after} does not wait for {inside}, and they could take each other's messages. "
            "Choose `seeds` that all devices can divide."
        )


def _computations(program: jax.stages.Compiled) -> tuple[dict[str, list[str]], str]:
    """The lines of each computation of a program, by name, and the name of the first."""
    computations: dict[str, list[str]] = {}
    lines: list[str] = []
    entry = ""
    for line in (program.as_text() or "").splitlines():
        if found := _COMPUTATION.match(line):
            lines = computations.setdefault(found[1], [])
            entry = found[1] if line.startswith("ENTRY") else entry
        else:
            lines.append(line)
    return computations, entry


def _called(line: str) -> list[str]:
    """The computations that an operation calls."""
    called = _CALLED.findall(line)
    for branches in _BRANCHES.findall(line):
        called += [branch.strip().lstrip("%") for branch in branches.split(",")]
    return called


def _size(shapes: str) -> int:
    """Bytes of the arrays that a text names, such as `(f32[3,4]{1,0}, s32[])`."""
    return sum(
        _BYTES.get(kind, int(re.sub(r"\D", "", kind) or 0) // 8) * math.prod(map(int, numbers))
        for kind, dims in re.findall(r"(\w+)\[([\d,]*)\]", shapes)
        for numbers in [filter(None, dims.split(","))]
    )
