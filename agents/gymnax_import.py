"""Let gymnax be imported without what only its pictures need.

gymnax imports matplotlib, and seaborn, which brings pandas and scipy.stats: half of the time that
agents would take to be imported. To be imported before gymnax is, which `agents` does first of all.
"""

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_OF_PICTURES = ("seaborn", "matplotlib", "matplotlib.pyplot", "matplotlib.colors")


class _Deferred(ModuleType):
    """A module that is imported where something of it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked of every module there is by `inspect`
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


class _Finder(MetaPathFinder):
    """Finds gymnax where it is, once, and has it loaded with deferred modules."""

    def find_spec(
        self, name: str, path: Any, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "gymnax":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _WithoutPictures(spec.loader)
        return spec


class _WithoutPictures(Loader):
    """Loads as another loader does, with deferred modules in the place of those of pictures."""

    def __init__(self, loader: Loader):
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        deferred = {name: _Deferred(name) for name in _OF_PICTURES if name not in sys.modules}
        sys.modules.update(deferred)
        for name, placeholder in deferred.items():
            parent, _, own = name.rpartition(".")
            if parent in deferred:
                setattr(deferred[parent], own, placeholder)
        try:
            self._loader.exec_module(module)
        finally:
            # gymnax keeps its own; whoever imports them from now on gets the modules themselves.
            for name in deferred:
                del sys.modules[name]


if "gymnax" not in sys.modules:
    sys.meta_path.insert(0, _Finder())
