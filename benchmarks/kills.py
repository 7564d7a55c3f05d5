"""What is left of a training that is killed again and again, and of two in one folder.

`python -m benchmarks.kills`. Processes are killed (SIGKILL) before and after each rename and each
fsync, within and after each write of a run, and at random moments; what goes on from there is
killed once more, and the last one runs through. Then `scalars.csv`, `config.json` and
`checkpoint.eqx` must be, byte for byte, those of a run that nobody disturbed. Linux only: the
processes are forks, which share what was imported, and programs are compiled once, into a folder.
"""

import contextlib
import importlib
import itertools
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

FILES = ("scalars.csv", "config.json", "checkpoint.eqx")
_PATIENCE = 120.0  # seconds
REFUSED = 3  # the exit code of a process to which the folder was refused


@dataclass(frozen=True)
class Options:
    """How often."""

    kills: int = 600
    """Processes that are killed."""
    writers: int = 50
    """Pairs of processes that write to one folder."""
    chain: int = 3
    """Of one training at most, before it may run through."""
    skip: int = 0
    """Places that are left out, because an earlier session with the same seed had them."""
    seed: int = 0
    """Of the order of places, and of the random moments."""


@dataclass(frozen=True)
class Place:
    """Where a process kills itself: at the n-th call of a kind, counted from 1."""

    kind: str
    number: int
    after: bool


def train(folder: Path) -> None:
    """Train, or go on, as a user would who gives the same command again."""
    import agents
    from agents.running.folder import CHECKPOINT

    agents.train(
        agents.Tabular(env="t_maze", rollout_length=50),
        steps=600,
        seeds=2,
        out=folder,
        resume=(folder / CHECKPOINT).exists(),
        evaluate_every=4,
        evaluation_episodes=4,
        checkpoint_every=2,
        progress=False,
    )


class _Calls:
    """Counts renames, fsyncs and writes of this process, and kills it at one of them."""

    def __init__(self, place: Place | None):
        self.count: Counter[str] = Counter()
        self._place = place

    def watch(self) -> None:
        for kind, name in (("rename", "replace"), ("fsync", "fsync")):
            setattr(os, name, self._watched(kind, getattr(os, name)))
        path_open = Path.open

        def open_watched(path: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
            file = path_open(path, mode, *rest, **options)
            return _Torn(file, self) if set(mode) & set("wax") else file

        Path.open = open_watched  # pyright: ignore[reportAttributeAccessIssue]

    def reached(self, kind: str, *, after: bool) -> bool:
        return self._place == Place(kind, self.count[kind], after)

    def _watched(self, kind: str, function: Callable) -> Callable:
        def call(*arguments: Any, **options: Any) -> Any:
            self.count[kind] += 1
            if self.reached(kind, after=False):
                die()
            result = function(*arguments, **options)
            if self.reached(kind, after=True):
                die()
            return result

        return call


class _Torn:
    """A file, of which one write may put only a half on the disk, or all of it, and be the last."""

    def __init__(self, file: Any, calls: _Calls):
        self._file, self._calls = file, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> "_Torn":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: Any) -> int:
        self._calls.count["write"] += 1
        for after, part in ((False, data[: len(data) // 2]), (True, data)):
            if self._calls.reached("write", after=after):
                self._file.write(part)
                self._file.flush()
                die()
        return self._file.write(data)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def start(folder: Path, place: Place | None = None, counts: Path | None = None) -> int:
    """Train in a process of its own, and return its number."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        calls = _Calls(place)
        calls.watch()
        from agents.running import RunFolderError

        try:
            train(folder)
            code = 0
        except RunFolderError:
            code = REFUSED
        if counts is not None:
            counts.write_text("\n".join(f"{kind} {n}" for kind, n in calls.count.items()))
    except BaseException as error:
        print(f"{folder}: {type(error).__name__}: {error}", flush=True)
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """Wait for a process; its exit code, or a signal's number below 0, of one that hangs too."""
    alarm = threading.Timer(_PATIENCE, os.kill, (child, signal.SIGABRT))
    alarm.start()
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        alarm.cancel()


def content(folder: Path) -> dict[str, bytes]:
    """What must be the same."""
    return {name: (folder / name).read_bytes() for name in FILES}


def places(counts: dict[str, int]) -> Iterator[Place]:
    """Every call of a run, before and after."""
    for kind, count in counts.items():
        for number, after in itertools.product(range(1, count + 1), (False, True)):
            yield Place(kind, number, after)


def run(options: Options) -> dict[str, Any]:
    """Kill, go on, compare, and print.

    **Returns:**

    Kills by kind, trainings that were killed and went on to the end, and what was wrong.
    """
    import jax

    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        root = Path(name)
        settings = {
            "jax_compilation_cache_dir": f"{name}/compiled",
            "jax_persistent_cache_min_compile_time_secs": 0.0,
        }
        for setting, value in settings.items():
            stack.callback(jax.config.update, setting, getattr(jax.config, setting))
            jax.config.update(setting, value)
        _import_all()
        whole, counted = root / "whole", root / "counts"
        assert ended(start(root / "warm")) == 0
        began = time.monotonic()
        assert ended(start(whole, counts=counted)) == 0
        lasts, wanted = time.monotonic() - began, content(whole)
        counts = {kind: int(n) for kind, n in map(str.split, counted.read_text().splitlines())}
        print(f"a run: {lasts:.1f} s, {counts}", flush=True)
        found = _kills(options, root, wanted, lasts, list(places(counts)), draw)
        found |= _writers(options, root, wanted, lasts, draw)
    print(found)
    return found


def _import_all() -> None:
    """What a process needs and what starts no thread, of which a fork would have a dead copy.

    gymnax starts JAX's, so that `agents` is imported by each process.
    """
    for name in (
        "flax.struct",
        "matplotlib.figure",
        "optax",
        "rich.progress",
        "tensorboardX",
        "zoo",
    ):
        importlib.import_module(name)


def _kills(
    options: Options,
    root: Path,
    wanted: dict[str, bytes],
    lasts: float,
    everywhere: list[Place],
    draw: random.Random,
) -> dict[str, Any]:
    kills: Counter[str] = Counter()
    differing, trainings = [], 0
    killed_at: set[Place] = set()
    untried = draw.sample(everywhere, len(everywhere))
    untried = untried[: len(untried) - options.skip]
    while kills.total() < options.kills:
        folder = root / f"run-{trainings}"
        trainings += 1
        # Every place once in a fresh run; then any place of what goes on, or any moment.
        chain = [untried.pop() if untried else None]
        chain += [draw.choice([None, draw.choice(everywhere)]) for _ in range(options.chain - 1)]
        for number, place in enumerate(chain):
            child = start(folder, place)
            if place is None:
                time.sleep(draw.uniform(0, lasts))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            if (code := ended(child)) == -signal.SIGKILL:
                kills[place.kind if place else "moment"] += 1
                if place and number == 0:
                    killed_at.add(place)
            elif code:
                differing.append(f"{folder.name}: exit code {code} at {place}")
        if (code := ended(start(folder))) or content(folder) != wanted:
            differing.append(f"{folder.name}: after {chain}, exit code {code}")
        else:
            _remove(folder)
        if trainings % 20 == 0:
            print(f"{trainings} trainings, kills: {dict(kills)}, wrong: {differing}", flush=True)
    return {
        "kills": dict(kills),
        "trainings": trainings,
        "places": f"{len(killed_at)} of {len(everywhere)}",
        "wrong": differing,
    }


def _writers(
    options: Options, root: Path, wanted: dict[str, bytes], lasts: float, draw: random.Random
) -> dict[str, Any]:
    """Two at once on a folder: fresh, or both going on after a kill."""
    pairs: Counter[str] = Counter()
    wrong = []
    for number in range(options.writers):
        folder = root / f"pair-{number}"
        resuming = number % 2 == 1
        if resuming:
            child = start(folder)
            time.sleep(draw.uniform(lasts / 2, lasts))
            os.kill(child, signal.SIGKILL)
            ended(child)
        codes = sorted(map(ended, [start(folder), start(folder)]))
        pairs["resuming" if resuming else "fresh"] += 1
        # Where the first has ended already the other one finds a complete run, and goes on with it.
        if codes not in ([0, REFUSED], [0, 0]) or content(folder) != wanted:
            wrong.append(f"{folder.name}: exit codes {codes}")
        pairs[f"exit codes {codes}"] += 1
        _remove(folder)
    return {"pairs": dict(pairs), "wrong pairs": wrong}


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


if __name__ == "__main__":
    found = run(tyro.cli(Options))
    sys.exit(bool(found["wrong"] or found["wrong pairs"]))
