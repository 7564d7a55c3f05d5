"""Import gymnax without what only its pictures need.

gymnax imports seaborn, which brings pandas and scipy.stats: half of the time that `import agents`
would take. To be imported before anything else of gymnax is.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

_OF_PICTURES = ("seaborn", "matplotlib.pyplot")


class _Deferred(ModuleType):
    """A module that is imported where something of it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked of every module there is by `inspect`
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


def _import_gymnax() -> None:
    deferred = {name: _Deferred(name) for name in _OF_PICTURES if name not in sys.modules}
    sys.modules.update(deferred)
    try:
        importlib.import_module("gymnax")
    finally:
        # gymnax keeps its own; whoever imports them from now on gets the modules themselves.
        for name in deferred:
            del sys.modules[name]


_import_gymnax()
