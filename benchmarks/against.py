"""Another commit against this tree: run time and compile time of the same programs, side by side.

    python -m benchmarks.against HEAD~20
    python -m benchmarks.against v0.1.0 --rounds 40 --markdown

Both trees run in processes of their own, which wait for each other: every program is timed here and
there in turn, for a moment each, so that whatever else the machine does hits both alike. Programs
are iterations of PPO, and scans of cells with and without gradients, by what their names have been
since the first commits. A commit that does not have one fails.
"""

import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Annotated

import tyro

from benchmarks._command import command
from benchmarks._measure import QUICK, Output, Row, heading

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = Path(__file__).with_name("_programs.py")


@dataclass(frozen=True)
class Options:
    """What is compared, and how often."""

    before: Annotated[str, tyro.conf.Positional]
    """A commit of this repository, or a folder with another tree."""
    gradients: tuple[str, ...] = ("BPTT", "TBPTT(8)", "RTRL(8)")
    """Gradients of PPO, for an RTU of 96 units on RepeatPreviousEasy."""
    encoder_sizes: tuple[int, ...] = (0, 64)
    """Widths of the layer in front of PPO's memory."""
    cells: tuple[str, ...] = ("rtu", "lru", "s5", "ffm", "mingru", "gru", "lstm", "transformer")
    """Names of cells, of 64 units and inputs, for 256 steps of 16 sequences."""
    rounds: int = 15
    """Measurements of each program in each tree; of compilations three, or one above 2 s."""
    quick: bool = False
    """Tiny programs, to see that it works."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


def run(options: Options) -> dict[str, list[Row]]:
    """Measure and print.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:**

    The rows of the table `against`: medians over the rounds, the median and the quartiles of the
    ratios of each round, and the least seconds of compilations.

    **Raises:**

    `ValueError` if `before` is neither a folder nor a commit or `rounds` is less than 2, or
    `RuntimeError` with what a tree's process said at last, if it ended.
    """
    if options.rounds < 2:
        raise ValueError(f"`rounds` (={options.rounds}) must be at least 2.")
    names = [f"ppo {g} {size}" for size in options.encoder_sizes for g in options.gradients]
    names += [f"cell {name} {form}" for name in options.cells for form in ("scan", "gradient")]
    rounds, compilations = (2, 1) if options.quick else (options.rounds, 3)
    with ExitStack() as stack:
        before = stack.enter_context(tree(options.before))
        pair = [
            stack.enter_context(Programs(folder, quick=options.quick)) for folder in (before, ROOT)
        ]
        compiled = {name: [_in_turn(pair, f"compile {name}", 0)] for name in names}
        for k in range(1, compilations):
            for name, found in compiled.items():
                if max(found[0]) < 2:
                    found.append(_in_turn(pair, f"compile {name}", k))
        # All programs of a round before the next round, so that a slow minute is one of few.
        turns = [{name: _in_turn(pair, f"run {name}", k) for name in names} for k in range(rounds)]
    rows = []
    for name in names:
        old, new = zip(*(turn[name] for turn in turns), strict=True)
        ratios = [b / a for a, b in zip(old, new, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        rows.append(
            {
                "program": name,
                "before ms": 1e3 * statistics.median(old),
                "now ms": 1e3 * statistics.median(new),
                "× before": middle,
                "quartiles": f"{low:.2f} to {high:.2f}",
                "compile s before": min(a for a, _ in compiled[name]),
                "compile s now": min(b for _, b in compiled[name]),
            }
        )
    budget = QUICK if options.quick else None
    options.output.table(heading(f"This tree against {options.before}", budget=budget), rows)
    options.output.save({"against": rows})
    return {"against": rows}


@contextmanager
def tree(before: str) -> Iterator[Path]:
    """A folder with the files of a commit, or the folder that was named."""
    if Path(before).is_dir():
        yield Path(before).resolve()
        return
    git = ["git", "-C", str(ROOT), "archive", "--format=tar", before]
    archive = subprocess.run(git, capture_output=True, check=False)
    if archive.returncode:
        said = archive.stderr.decode().strip().removeprefix("fatal: ")
        raise ValueError(f"`before` (={before!r}) must be a folder or a commit: {said}.")
    with (
        tempfile.TemporaryDirectory() as folder,
        tarfile.open(fileobj=BytesIO(archive.stdout)) as t,
    ):
        t.extractall(folder, filter="data")
        yield Path(folder)


class Programs:
    """A process that compiles and times the programs of a tree."""

    def __init__(self, folder: Path, *, quick: bool):
        self._folder, self._quick = folder, quick

    def __enter__(self) -> "Programs":
        self._log = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", PROGRAM.read_text(), json.dumps(self._quick)],
            cwd=self._folder,  # before everything else on the path of `-c`
            env={
                **os.environ,
                "PYTHONPATH": str(self._folder),
                "JAX_ENABLE_COMPILATION_CACHE": "0",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.communicate()  # ends its input, and so itself
        self._log.close()

    def seconds(self, line: str) -> float:
        """What the process answers to a line."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            print(line, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            answer = ""
        else:
            answer = self._process.stdout.readline()
        if not answer:
            self._log.seek(0)
            said = self._log.read().strip().splitlines() or ["nothing was said"]
            raise RuntimeError(f"{line!r} ended the process of {self._folder}: {said[-1]}")
        return json.loads(answer)


def _in_turn(pair: Sequence[Programs], line: str, turn: int) -> tuple[float, float]:
    """Seconds in both trees; the second is first in every other turn."""
    seconds = {which: pair[which].seconds(line) for which in ((0, 1) if turn % 2 == 0 else (1, 0))}
    return seconds[0], seconds[1]


if __name__ == "__main__":
    command(run, Options, __doc__)
