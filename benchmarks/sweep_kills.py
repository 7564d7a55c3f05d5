"""What is left of a sweep whose processes are killed again and again.

`python -m benchmarks.sweep_kills`. The sweep, or one of the trainings that it started, is killed
(SIGKILL) at random moments; where the sweep has ended the same command is given again, at once. No
checkpoint may be damaged or older than before, and in the end `scalars.csv`, `config.json` and
`checkpoint.eqx` of every run must be, byte for byte, those of a sweep that nobody disturbed. Linux
only.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro

from benchmarks.kills import content

RUNS = ("epsilon=0.1", "epsilon=0.2")
_PATIENCE = 600.0  # seconds


@dataclass(frozen=True)
class Options:
    """How often, and how long the sweeps are."""

    kills: int = 200
    """Processes that are killed."""
    chain: int = 8
    """Of one sweep at most, before it may run through."""
    iterations: int = 300
    """Of each of its two runs, with a checkpoint after each."""
    seed: int = 0
    """Of the random moments."""


@dataclass
class _Sweep:
    """A sweep in a folder, which is started again and again."""

    out: Path
    iterations: int
    process: subprocess.Popen | None = None
    codes: list[int] = field(default_factory=list)

    def start(self) -> subprocess.Popen:
        words = ["--algorithm", "tabular", "--env", "t_maze", "--rollout-length", "50"]
        words += ["--steps", str(50 * self.iterations), "--seeds", "2"]
        words += ["--checkpoint-every", "1", "--evaluate-every", "50", "--evaluation-episodes", "4"]
        words += ["--grid", f"epsilon={','.join(run.partition('=')[2] for run in RUNS)}"]
        words += ["--workers", "2", "--out", str(self.out)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agents", "sweep", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return self.process

    def victims(self) -> dict[str, list[int]]:
        """The processes that can be killed, by kind; none where the sweep has ended."""
        assert self.process is not None
        if self.process.poll() is not None:
            return {}
        found = {"sweep": [self.process.pid], "training": list(self._trainings())}
        return {kind: numbers for kind, numbers in found.items() if numbers}

    def _trainings(self) -> Iterator[int]:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:  # it has ended
                continue
            folders = (str(self.out / "runs" / run).encode() for run in RUNS)
            if b"agents.sweeps.child" in words and any(folder in words for folder in folders):
                yield int(process.name)

    def progress(self) -> list[int]:
        """The iteration that each run's checkpoint holds; -1 without one."""
        from agents.running.checkpoint import progress_of, read_header
        from agents.running.folder import CHECKPOINT

        paths = [self.out / "runs" / run / CHECKPOINT for run in RUNS]
        return [progress_of(p, read_header(p).progress) if p.exists() else -1 for p in paths]

    def bytes(self) -> list[dict[str, bytes]]:
        return [content(self.out / "runs" / run) for run in RUNS]


def run(options: Options) -> dict[str, Any]:
    """Kill, go on, compare, and print.

    **Returns:**

    Kills by kind, the sweeps, and what was wrong.
    """
    draw = random.Random(options.seed)
    kills: Counter[str] = Counter()
    wrong: list[str] = []
    sweeps = 0
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        os.environ["JAX_COMPILATION_CACHE_DIR"] = f"{root}/compiled"
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        # It compiles for all others, which are over a tenth sooner: there some kills come too late.
        whole = _Sweep(root / "whole", options.iterations)
        began = time.monotonic()
        assert whole.start().wait(_PATIENCE) == 0
        lasts = time.monotonic() - began
        print(f"a sweep: {lasts:.1f} s", flush=True)
        while kills.total() < options.kills:
            sweep = _Sweep(root / f"sweep-{sweeps}", options.iterations)
            sweeps += 1
            chain = min(options.chain, options.kills - kills.total())
            wrong += _disturbed(sweep, chain, lasts, draw, kills)
            if sweep.bytes() != whole.bytes():
                wrong.append(f"{sweep.out.name}: other bytes")
            print(f"{sweeps} sweeps, kills: {dict(kills)}, wrong: {wrong}", flush=True)
    found = {"kills": dict(kills), "sweeps": sweeps, "wrong": wrong}
    print(found)
    return found


def _disturbed(
    sweep: _Sweep, chain: int, lasts: float, draw: random.Random, kills: Counter[str]
) -> list[str]:
    """Kill processes of a sweep, a chain of them, then let it end; return what was wrong."""
    wrong, before, killed = [], [-1] * len(RUNS), 0
    process = sweep.start()
    while killed < chain:
        time.sleep(draw.uniform(0, lasts))
        if victims := sweep.victims():
            kind = draw.choice(sorted(victims))
            os.kill(draw.choice(victims[kind]), signal.SIGKILL)
            kills[kind] += 1
            killed += 1
            if kind == "training":
                continue  # the sweep goes on
        code = process.wait(_PATIENCE)
        if code not in (0, 1, -signal.SIGKILL):
            wrong.append(f"{sweep.out.name}: exit code {code}")
        now = sweep.progress()
        if any(after < earlier for after, earlier in zip(now, before, strict=True)):
            wrong.append(f"{sweep.out.name}: from {before} back to {now}")
        if code == 0:
            return wrong  # nothing is left that could be killed
        before, process = now, sweep.start()
    if process.wait(_PATIENCE) == 1:  # a training was killed: the same command tries it again
        process = sweep.start()
    if code := process.wait(_PATIENCE):
        wrong.append(f"{sweep.out.name}: exit code {code} at last")
    return wrong


if __name__ == "__main__":
    found = run(tyro.cli(Options))
    sys.exit(bool(found["wrong"]))
