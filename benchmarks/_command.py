"""What every benchmark's command does before it measures."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import jax
import tyro
from jax.experimental.compilation_cache import compilation_cache


def command(run: Callable[[Any], Any], options: type, description: str | None) -> None:
    """Run a benchmark with the options of the command line."""
    # A user's folder of compiled programs would be read in place of compiling what is timed. JAX
    # asks once whether it may, and has asked where importing has compiled something.
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    run(tyro.cli(options, description=description))


def check_file(name: str, path: Path, *endings: str) -> None:
    """Refuse, before anything is measured, a file whose folder there is not.

    **Arguments:**

    - `endings`: those that it may have; any by default.
    """
    if not path.parent.is_dir():
        raise ValueError(f"`{name}` (={path}) must be in a folder that there is.")
    if endings and path.suffix not in endings:
        raise ValueError(f"`{name}` (={path}) must end in {', '.join(endings)}.")


def check_names(name: str, given: Collection[str], known: Collection[str]) -> None:
    """Refuse, before anything is measured, what is not among what there is."""
    for one in given:
        if one not in known:
            raise ValueError(f"`{name}` (={one!r}) must be among {', '.join(known)}.")
