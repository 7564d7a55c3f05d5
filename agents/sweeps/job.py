"""One run of a sweep, as every engine trains it: `train` in a process of its own."""

import contextlib
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agents.running.folder import CHECKPOINT, has_writer
from agents.sweeps.folder import LOGS, RUNS, write_exit_code

CHILD = "agents.sweeps.child"
_LOOK = 0.2  # seconds between two looks at a process
# What is left of a sweep that was killed writes a last checkpoint: that takes an iteration.
_PATIENCE = 60.0  # seconds


@dataclass(frozen=True)
class Job:
    """A run of a sweep, which may be sent to another machine.

    **Attributes:**

    - `name`: of its folder.
    - `words`: of `train`, without `--out` and `--resume`.
    - `out`: the sweep's folder, absolute.
    - `cwd`: the folder in which the sweep was started, where modules of the user's are.
    """

    name: str
    words: tuple[str, ...]
    out: Path
    cwd: Path

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.out / RUNS / self.name

    @property
    def log(self) -> Path:
        """What the training printed, of all attempts."""
        return self.out / LOGS / f"{self.name}.log"

    def command(self) -> list[str]:
        """Return the words that begin the run, or go on with it."""
        resume = ["--resume"] * (self.folder / CHECKPOINT).exists()
        return ["train", *self.words, "--out", str(self.folder), *resume]


class Outcome(NamedTuple):
    """What came of a run: `problem` is empty where it is complete."""

    job: Job
    problem: str


def never() -> bool:
    """Ask for nothing."""
    return False


def execute(
    job: Job, asked_to_stop: Callable[[], bool] = never, asked_to_die: Callable[[], bool] = never
) -> Outcome:
    """Train a run, or go on with it, and wait for its end.

    Whatever ends this function, or its process, the training is asked to stop, and writes a
    checkpoint.

    **Arguments:**

    - `asked_to_stop`: looked at now and then: whether to end with a checkpoint.
    - `asked_to_die`: likewise: whether to end at once.
    """
    try:
        code = _train(job, asked_to_stop, asked_to_die)
    except OSError as error:
        return Outcome(job, str(error))
    return Outcome(job, problem_of(code))


def _train(job: Job, asked_to_stop: Callable[[], bool], asked_to_die: Callable[[], bool]) -> int:
    latest = time.monotonic() + _PATIENCE
    while has_writer(job.folder) and time.monotonic() < latest and not asked_to_stop():
        time.sleep(_LOOK)
    ended = job.log.with_suffix(".exit")
    job.log.parent.mkdir(parents=True, exist_ok=True)
    ended.unlink(missing_ok=True)
    words = job.command()
    with job.log.open("ab") as log:
        log.write(f"$ python -m agents {shlex.join(words)}\n".encode())
        log.flush()
        process = subprocess.Popen(
            [sys.executable, *apart(job.cwd), "-u", "-m", CHILD, *words],
            stdin=subprocess.PIPE,  # its end is the request to stop
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=job.cwd,
            start_new_session=True,  # Ctrl-C reaches this process, which asks
        )
    assert process.stdin is not None
    try:
        while process.poll() is None:
            if asked_to_die():
                process.kill()
            elif asked_to_stop():
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK)
    finally:
        process.stdin.close()
        code = process.wait()
        with contextlib.suppress(OSError):
            write_exit_code(job.out, job.name, code)
    return code


def apart(cwd: Path) -> list[str]:
    """Return the option by which Python does not take a folder of the user's for one of ours.

    **Arguments:**

    - `cwd`: the folder in which Python is started.
    """
    ours = Path(__file__).resolve().parents[2]
    return [] if cwd.resolve() == ours else ["-P"]


def problem_of(code: int) -> str:
    """Say what an exit code means; nothing where it is that of a complete run."""
    if code in (128 + signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGTERM):
        return "stopped"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}" if code else ""
