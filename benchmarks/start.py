"""How long the command line takes until it says something, and until it trains.

Wall time and the processor's time of fresh processes, the least of several, because other work on
the machine only adds: until `--help` is printed; until `train` says its first words, that it
compiles, that it has compiled, and that an iteration is done. The first of these trainings finds
nothing kept from a start before, the others what the first has kept.

    python -m benchmarks.start --markdown
"""

import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import tyro

from benchmarks._command import command
from benchmarks._measure import Output, Row, heading

HELP = ("", "train", "evaluate", "play", "compare", "watch", "analyze", "envs", "cells")
TRAIN = (
    "--env RepeatPreviousEasy --memory rtu --hidden 96 --gradient rtrl --segment 8 --steps 1e6 "
    "--seeds 3 --progress lines"
)
# JAX's own folder of compiled programs, and what goes into it.
_CACHES = [name for name in os.environ if name.startswith(("JAX_COMPILATION_", "JAX_PERSISTENT_"))]
TOLD = {
    "first words": "trace-zoo",
    "compiling": "compiling",
    "compiled": "compiled in",
    "first iteration done": "iteration 1/",
}


@dataclass(frozen=True)
class Options:
    """What `python -m benchmarks.start` measures."""

    train: str = TRAIN
    """Words of the training."""
    repeats: int = 5
    """Starts of each kind; of the first training, whose programs compile, there is one."""
    quick: bool = False
    """One `--help`, to see that it works."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


def help_seconds(command: str) -> tuple[float, float]:
    """Seconds until a command's `--help` is printed: on the wall, and of the processor."""
    before, began = _processor_seconds(), time.perf_counter()
    words = [sys.executable, "-m", "agents", *command.split(), "--help"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began, _processor_seconds() - before


def train_seconds(words: str, folder: Path) -> dict[str, tuple[float, float]]:
    """The same until a training's first words, and until it says each of what follows."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    command = [sys.executable, "-m", "agents", "train", *shlex.split(words)]
    began, found = time.perf_counter(), {}
    process = psutil.Popen(
        [*command, "--out", str(folder / "run")],
        env={
            **{name: x for name, x in os.environ.items() if name not in _CACHES},
            "TRACE_ZOO_CACHE": str(folder / "compiled"),
            "PYTHONUNBUFFERED": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    for line in process.stdout:
        used = process.cpu_times()
        seconds = time.perf_counter() - began, used.user + used.system
        for what, text in TOLD.items():
            if text in line:
                found[what] = seconds
        if len(found) == len(TOLD):
            break
    process.kill()
    process.wait()
    return found


def _row(start: str, seconds: Sequence[tuple[float, float]]) -> Row:
    wall, processor = zip(*seconds, strict=True)
    return {"start": start, "wall s": min(wall), "processor s": min(processor)}


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(options: Options) -> dict[str, list[Row]]:
    """Measure and print.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:** the rows of the table `start`.
    """
    commands, repeats = (HELP[:1], 1) if options.quick else (HELP, options.repeats)
    rows: list[Row] = []
    for words in commands:
        help_seconds(words)  # compiles bytecode and brings files from the disk
        starts = [help_seconds(words) for _ in range(repeats)]
        rows.append(_row(" ".join(filter(None, (words, "--help"))), starts))
    if not options.quick:
        with tempfile.TemporaryDirectory() as folder:
            first, *others = [
                train_seconds(options.train, Path(folder)) for _ in range(1 + repeats)
            ]
        for what in TOLD:
            rows.append(_row(f"train, nothing kept: {what}", [first[what]]))
            rows.append(_row(f"train, programs kept: {what}", [start[what] for start in others]))
    options.output.table(heading("Seconds of fresh processes"), rows)
    options.output.save({"start": rows})
    return {"start": rows}


if __name__ == "__main__":
    command(run, Options, __doc__)
