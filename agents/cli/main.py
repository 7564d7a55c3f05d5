"""The command line, `python -m agents`: train, evaluate, play, compare, analyze, envs, cells."""

import argparse
import importlib
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any, Union

import tyro
from rich.console import Console

from agents.algorithms import agent_class
from agents.cli.analyze import Analyze
from agents.cli.cells import Cells
from agents.cli.compare import Compare
from agents.cli.envs import Envs
from agents.cli.evaluate import Evaluate
from agents.cli.play import Play
from agents.cli.train import train_command
from agents.running import TrainingDiverged, TrainingInterrupted


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on words, the process's by default, and return the exit code.

    It is 0; 2 after an error of the user's, which is one message on stderr; 130 after Ctrl-C and
    143 after SIGTERM, once a checkpoint is written. Errors in the program itself are raised as they
    are; so are all with `TRACE_ZOO_TRACEBACK=1` in the environment.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    errors = Console(stderr=True, soft_wrap=True)
    try:
        parse_command(words)(Console())
    except TrainingInterrupted as stopped:
        again = shlex.join(["python", "-m", "agents", *(w for w in words if w != "--resume")])
        errors.print(f"{stopped}\n{again} --resume", markup=False, highlight=False)
        return 128 + stopped.number
    except KeyboardInterrupt:
        errors.print("stopped at once; the last checkpoint is kept")
        return 130
    except (ValueError, OSError, ImportError, TrainingDiverged) as error:
        if os.environ.get("TRACE_ZOO_TRACEBACK"):
            raise
        errors.print(str(error), style="bold red", markup=False, highlight=False)
        return 2
    return 0


def parse_command(words: Sequence[str]) -> Any:
    """Return the command that was typed, to be called with a console.

    **Raises:**

    `ValueError` or `ImportError` for an algorithm, a preset or a module that is not there;
    `SystemExit` where the words make no command, and for `--help`.
    """
    # What is imported may register an algorithm, and the algorithm has the options: both are to be
    # known before the words can be read as a whole.
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--import", action="append", default=[], dest="imports")
    early.add_argument("--algorithm", default="ppo")
    early.add_argument("--preset")
    chosen, _ = early.parse_known_args(list(words))
    sys.path.insert(0, os.getcwd())  # a module of the user's stands where the command is given
    try:
        for module in chosen.imports:
            importlib.import_module(module)
    finally:
        sys.path.remove(os.getcwd())
    train = train_command(agent_class(chosen.algorithm), chosen.preset)
    return tyro.cli(
        Union[train, Evaluate, Play, Compare, Analyze, Envs, Cells],  # pyright: ignore  # noqa: UP007
        prog="python -m agents",
        description="Agents with memory: train them, evaluate them, compare them.",
        args=list(words),
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
    )
