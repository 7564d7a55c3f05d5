"""Experiments by name."""

import importlib
import pkgutil
from typing import Any

from agents.experiments import definitions
from zoo.parts.checks import did_you_mean


def names() -> tuple[str, ...]:
    """Return the names of all experiments, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(definitions.__path__)))


def load(name: str) -> Any:
    """Return the experiment of a name.

    **Raises:**

    `ValueError` for a name that there is not.
    """
    if name not in names():
        hint = did_you_mean(name, names())
        raise ValueError(f"`name` (={name!r}) must be one of {', '.join(names())}.{hint}")
    return importlib.import_module(f"{definitions.__name__}.{name}").EXPERIMENT
