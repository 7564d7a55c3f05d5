"""Sweeps as processes of their own, and the processes that they start."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.project import source

TABULAR = (
    *("--algorithm", "tabular", "--env", "t_maze", "--rollout-length", "200"),
    *("--evaluation-episodes", "4", "--checkpoint-every", "5"),
)


def until(holds: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait until something holds.

    **Raises:**

    `AssertionError` if it does not in time.
    """
    latest = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < latest
        time.sleep(0.02)


def sweep(*words: str, **environment: str) -> subprocess.Popen:
    """Start a sweep, on programs that are kept where the tests keep theirs."""
    import jax

    kept = {"JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir or ""}
    kept |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1", "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(
        [sys.executable, "-m", "agents", "sweep", *TABULAR, *words],
        cwd=source.ROOT,
        env={**os.environ, **kept, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def said(process: subprocess.Popen, code: int) -> str:
    """What a process printed that must end with an exit code."""
    text, _ = process.communicate(timeout=300)
    assert process.returncode == code, text
    return text


def trainings(folder: Path) -> Iterator[int]:
    """The processes that have a folder, or one in it, among their words."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if b"agents.sweeps.child" in words and any(str(folder).encode() in w for w in words):
            yield int(process.name)


def parent(process: int) -> int:
    """The process that started another."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def same(one: Path, other: Path) -> bool:
    """Whether two runs left the same bytes."""
    names = ("scalars.csv", "checkpoint.eqx", "config.json")
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)
