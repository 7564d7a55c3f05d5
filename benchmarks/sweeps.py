"""How much sooner a sweep ends with two workers than with one.

Wall time of whole sweeps of short runs, from the command to its end: of each engine with one worker
and with more, in turns, over and over. Every training is a process of its own, whose programs are
kept from a first one. The machine's other work slows both; its load is told.

    python -m benchmarks.sweeps --markdown
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import tyro

from benchmarks._command import command
from benchmarks._measure import Output, Row

Engine = Literal["local", "ray"]


@dataclass(frozen=True)
class Options:
    """What `python -m benchmarks.sweeps` measures."""

    engines: tuple[Engine, ...] = ("ray", "local")
    """Where runs are trained."""
    runs: int = 8
    """Runs of a sweep."""
    workers: int = 2
    """Workers to compare with one."""
    steps: int = 100_000
    """Environment steps of a run."""
    repeats: int = 3
    """Sweeps of each kind."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


def sweep_seconds(options: Options, engine: Engine, workers: int, folder: Path) -> float:
    """Seconds that a sweep takes in a new folder."""
    words = ["--algorithm", "tabular", "--env", "t_maze", "--rollout-length", "1000"]
    words += ["--steps", str(options.steps), "--evaluate-every", "0"]
    words += ["--grid", f"seed={','.join(map(str, range(options.runs)))}"]
    words += ["--engine", engine, "--workers", str(workers), "--out", str(folder)]
    kept = {"JAX_COMPILATION_CACHE_DIR": str(folder.parent / "compiled")}
    kept |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "agents", "sweep", *words],
        env={**os.environ, **kept},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - began


def run(options: Options) -> dict[str, list[Row]]:
    """Measure and print.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:** the rows of the table `sweeps`.
    """
    if options.workers < 2:
        raise ValueError(f"`workers` (={options.workers}) must be at least 2, to compare with one.")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        for number, engine in enumerate(options.engines):
            seconds: dict[int, list[float]] = {1: [], options.workers: []}
            for repeat in range(-1, options.repeats):  # the first compiles, and is not counted
                for workers, measured in seconds.items():
                    folder = Path(name) / f"{number}-{repeat}-{workers}"
                    took = sweep_seconds(options, engine, workers, folder)
                    measured += [took] * (repeat >= 0)
            one, several = (statistics.median(measured) for measured in seconds.values())
            ratios = [b / a for a, b in zip(*seconds.values(), strict=True)]
            rows.append(
                {
                    "engine": engine,
                    "1 worker s": one,
                    f"{options.workers} workers s": several,
                    "× of one": statistics.median(ratios),
                    "least ×": min(ratios),
                    "most ×": max(ratios),
                    "load": os.getloadavg()[0],
                }
            )
    title = f"sweeps of {options.runs} runs on {os.cpu_count()} cores"
    options.output.table(title, rows)
    options.output.save({"sweeps": rows})
    return {"sweeps": rows}


if __name__ == "__main__":
    command(run, Options, __doc__)
