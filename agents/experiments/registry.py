"""Experiments by name."""

import difflib
import importlib
import pkgutil
from typing import Any

from agents.experiments import definitions


def names() -> tuple[str, ...]:
    """Return the names of all experiments, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(definitions.__path__)))


def load(name: str) -> Any:
    """Return the experiment of a name.

    **Raises:**

    `ValueError` for a name that there is not.
    """
    if name not in names():
        near = difflib.get_close_matches(name, names(), 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"`name` (={name!r}) must be one of {', '.join(names())}.{hint}")
    return importlib.import_module(f"{definitions.__name__}.{name}").EXPERIMENT
