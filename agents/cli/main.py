"""The command line: train, sweep, evaluate, play, compare, experiment, leaderboard and others.

It speaks before it imports what takes seconds: commands import JAX and what needs it where they are
called, and only `train` to read its words, because its options are an agent's fields.
"""

import argparse
import gc
import importlib
import io
import os
import re
import shlex
import signal
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Union

import tyro
from rich.console import Console

from agents.cli.analyze import Analyze
from agents.cli.cache import keep_compiled
from agents.cli.cells import Cells
from agents.cli.compare import Compare
from agents.cli.envs import Envs
from agents.cli.evaluate import Evaluate
from agents.cli.experiment import Experiment
from agents.cli.leaderboard import Leaderboard
from agents.cli.loops import compile_loops_whole
from agents.cli.play import Play
from agents.cli.sweep import Sweep, parse_sweep
from agents.cli.train import train_command, untold_train_command
from agents.cli.watch import Watch
from agents.cli.words import early, in_flags, parse_count
from agents.running.errors import ProcessLost, RunsFailed, TrainingDiverged, TrainingInterrupted
from agents.running.output import lasting_console

# Errors that are told in one message.
_TOLD = (ValueError, OSError, ImportError, MemoryError, TrainingDiverged, ProcessLost)
_UNKNOWN = re.compile(r"`(name|algorithm)` \(=.*\) must be (one of|the name of)")
_GOES_ON = ("train", "sweep", "experiment", "leaderboard")
_SLOW_TO_BEGIN = ("train", "evaluate", "play", "experiment", "leaderboard", "analyze", "sweep")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on words, the process's by default, and return the exit code.

    It is 0; 2 after an error of the user's, which is one message on stderr; 1 after a sweep of
    which runs failed; 130 after Ctrl-C and 143 after SIGTERM, once a checkpoint is written; 141
    where a help text is read no further. Errors in the program itself are raised as they are; so
    are all with `TRACE_ZOO_TRACEBACK=1` in the environment.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")  # no training ends for want of a character
    errors = lasting_console(stderr=True, soft_wrap=True)
    if words[:1] == ["--version"]:
        print(versions())
        return 0
    command, told = None, argparse.Namespace(out=None)
    if arguments is None:
        # Modules are a million objects: to look through them at every so many, and once more after
        # `--help`, would be a fifth of the time that it takes.
        gc.disable()
        compile_loops_whole()
    try:
        told = early(words)
        if _greets(words, told.progress, errors):
            errors.print(f"trace-zoo {version()}: {words[0]} …", markup=False, highlight=False)
        if words[:1] == ["train"] and not {"--help", "-h"} & set(words):
            _join(told)
        command = parse_command(words)
        gc.enable()
        if getattr(command, "cache", False):
            keep_compiled()
        # What is all output, as that of `watch`, has no end but that nobody reads it any more.
        make = lasting_console if words[0] in _GOES_ON else Console
        command(make(markup=False, emoji=False))  # names of runs may hold brackets and colons
    except TrainingInterrupted as stopped:
        on = f"{stopped.where} To go on:\n{_again(words)}" if stopped.resumable else str(stopped)
        errors.print(on, markup=False, highlight=False)
        return 128 + stopped.number
    except KeyboardInterrupt:
        left = _left(words, Path(told.out)) if words[:1] == ["train"] and told.out else ""
        errors.print(f"stopped at once{left}", markup=False, highlight=False)
        return 130
    except (*_TOLD, RunsFailed) as error:
        if isinstance(error, BrokenPipeError) and command is None:
            # Who reads a help text has seen enough, as `head` has: nothing more is to be written.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 128 + signal.SIGPIPE
        if os.environ.get("TRACE_ZOO_TRACEBACK"):
            raise
        message = in_flags(str(error), command)
        named = not isinstance(command, Experiment)  # which no module registers
        if named and _UNKNOWN.search(str(error)) and not told.imports:
            message += " One of your own is known once its module is: --import MODULE."
        errors.print(message, style="bold red", markup=False, highlight=False)
        return 1 if isinstance(error, RunsFailed) else 2
    return 0


def _join(told: argparse.Namespace) -> None:
    """Find the other processes of a job, which JAX has to know of before it computes anything."""
    if told.processes is None:
        if told.coordinator is not None or told.process is not None:
            raise ValueError("--coordinator and --process have no meaning without --processes")
        return
    from agents.running.processes import join

    process = None if told.process is None else parse_count(told.process)
    processes = told.processes if told.processes == "auto" else parse_count(told.processes)
    join(told.coordinator, process, processes)


def parse_command(words: Sequence[str]) -> Any:
    """Return the command that was typed, to be called with a console.

    **Raises:**

    `ValueError` or `ImportError` for an algorithm, a preset or a module that is not there;
    `SystemExit` where the words make no command, and for `--help`.
    """
    # What is imported may register an algorithm, and the algorithm has the options: both are to be
    # known before the words can be read as a whole.
    told = early(words)
    here = os.getcwd()  # a module of the user's stands where the command is given
    sys.path.insert(0, here)
    try:
        for module in filter(None, told.imports):
            _import(module)
    finally:
        sys.path.remove(here)
        if here not in sys.path:  # as one that an environment's name or a module itself imports
            sys.path.append(here)
    if list(words[:1]) == ["sweep"]:
        return parse_sweep(words[1:], f"{program()} sweep")
    typed = list(words[:1]) == ["train"]
    train = train_command(told.algorithm, told.preset) if typed else untold_train_command()
    kinds: tuple[Any, ...] = (
        train,
        Sweep,
        Evaluate,
        Play,
        Compare,
        Experiment,
        Leaderboard,
        Watch,
        Analyze,
        Envs,
        Cells,
    )
    config = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)
    for kind in kinds:
        if list(words[:1]) == [kind.__name__.lower()]:
            # Among the others it would send who misspells an option of it to the help of all.
            name = f"{program()} {words[0]}"
            return tyro.cli(kind, prog=name, args=list(words[1:]), config=config)
    return tyro.cli(
        Union[kinds],  # pyright: ignore  # noqa: UP007
        prog=program(),
        description="Agents with memory: train them, evaluate them, compare them.\n\n"
        "--version tells the versions of this program and of what it runs on.",
        args=list(words),
        config=config,
    )


def _import(module: str) -> None:
    if module.endswith(".py") or "/" in module:
        raise ValueError(f"--import (={module}) must be the name of a module, not of its file")
    try:
        importlib.import_module(module)
    except (ImportError, SyntaxError) as error:
        if os.environ.get("TRACE_ZOO_TRACEBACK"):
            raise
        raise ValueError(f"--import (={module}) cannot be imported: {error}") from error


def program() -> str:
    """Return the program's name as it was called: `trace-zoo` or `python -m agents`."""
    return "trace-zoo" if Path(sys.argv[0]).stem == "trace-zoo" else "python -m agents"


def version(name: str = "trace-zoo") -> str:
    """Return the version of an installed package."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def versions() -> str:
    """Return what to tell about the installation where something is wrong with it."""
    below = ", ".join(f"{name} {version(name)}" for name in ("jax", "equinox", "gymnax"))
    return f"trace-zoo {version()} (Python {sys.version.split()[0]}, {below})"


def _greets(words: Sequence[str], progress: str, errors: Console) -> bool:
    """Whether to say that the program has begun: where it takes seconds, and somebody reads it."""
    if words[:1] == [] or words[0] not in _SLOW_TO_BEGIN or {"--help", "-h"} & set(words):
        return False
    return errors.is_terminal if words[0] != "train" else progress != "none"


def _again(words: Sequence[str]) -> str:
    """The command that goes on with a training, or an experiment, which goes on by itself."""
    rest = [word for word in words if word != "--resume"]
    return f"{program()} {shlex.join([*rest, *['--resume'] * (words[:1] == ['train'])])}"


def _left(words: Sequence[str], out: Path) -> str:
    """What a training that was stopped at once has left behind, and how to go on."""
    from agents.running.folder import CHECKPOINT

    path = out / CHECKPOINT
    if not path.exists():
        return ": nothing was saved, the same command begins anew"
    from agents.envs.registry import GYMNASIUM
    from agents.running.checkpoint import CheckpointError, progress_of, read_header
    from agents.running.errors import POLICY_IS_LEFT

    try:
        header = read_header(path)
        held = f". {path} holds iteration {progress_of(path, header.progress)}."
    except CheckpointError as error:
        return f". {error}"
    env = header.config.get("agent", {}).get("env", "")
    on_the_host = isinstance(env, str) and env.startswith(GYMNASIUM)
    return f"{held} {POLICY_IS_LEFT}" if on_the_host else f"{held} To go on:\n{_again(words)}"
