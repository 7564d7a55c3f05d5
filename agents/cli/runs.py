"""Runs as arguments of commands: their folders, and what to call them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

Run = tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]]
Runs = tyro.conf.Positional[
    Annotated[
        tuple[Path, ...], tyro.conf.arg(metavar="RUN [RUN ...]", help_behavior_hint="(one or more)")
    ]
]


def labels(runs: Sequence[Path]) -> tuple[str, ...]:
    """Name runs by their folders, with the way there where two folders have one name."""
    names = tuple(run.resolve().name for run in runs)
    return names if len(set(names)) == len(names) else tuple(str(run) for run in runs)
