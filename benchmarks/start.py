"""How long the command line takes until it says something, and until it trains.

Wall time and the processor's time of fresh processes, medians: until `--help` is printed, until the
first words of `train`, and until its first iteration is done, at first with nothing compiled, then
with the programs that the start before has kept.

    python -m benchmarks.start --markdown
"""

import os
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import tyro

from benchmarks._measure import Output, Row, heading

HELP = ("", "train", "evaluate", "play", "compare", "watch", "analyze", "envs", "cells")
TRAIN = (
    "--env RepeatPreviousEasy --memory rtu --hidden 96 --gradient rtrl --segment 8 --steps 1e6 "
    "--seeds 3 --progress lines"
)


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


def train_seconds(words: str, folder: Path) -> dict[str, float]:
    """Seconds until a training's first words, and until its first iteration is done."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    command = [sys.executable, "-m", "agents", "train", *shlex.split(words)]
    began, found = time.perf_counter(), {}
    process = subprocess.Popen(
        [*command, "--out", str(folder / "run")],
        env={
            **{name: x for name, x in os.environ.items() if not name.startswith("JAX_")},
            "TRACE_ZOO_CACHE": str(folder / "compiled"),
            "PYTHONUNBUFFERED": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        found.setdefault("first words", time.perf_counter() - began)
        for what, words_said in (("compiling", "compiling"), ("first iteration", "iteration 1/")):
            if words_said in line:
                found[what] = time.perf_counter() - began
        if "first iteration" in found:
            break
    process.kill()
    process.wait()
    return found


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
    for command in commands:
        help_seconds(command)  # compiles bytecode and brings files from the disk
        wall, processor = zip(*(help_seconds(command) for _ in range(repeats)), strict=True)
        median = {"wall s": statistics.median(wall), "processor s": statistics.median(processor)}
        rows.append({"start": " ".join(filter(None, (command, "--help"))), **median})
    if not options.quick:
        with tempfile.TemporaryDirectory() as folder:
            starts = [train_seconds(options.train, Path(folder)) for _ in range(1 + repeats)]
        for what in starts[0]:
            again = statistics.median(start[what] for start in starts[1:])
            rows.append({"start": f"train: {what}, the first time", "wall s": starts[0][what]})
            rows.append({"start": f"train: {what}, from then on", "wall s": again})
    options.output.table(heading("Seconds of fresh processes"), rows)
    options.output.save({"start": rows})
    return {"start": rows}


if __name__ == "__main__":
    run(tyro.cli(Options, description=__doc__))
