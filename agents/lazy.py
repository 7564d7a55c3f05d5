"""Packages whose names are imported where they are first used."""

import ast
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make what a package needs to import its public names late (PEP 562).

    ```python
    if TYPE_CHECKING:
        from agents.algorithms import PPO as PPO
    else:
        __getattr__, __dir__, __all__ = attach(__name__)
    ```

    The names are those that stand under `if TYPE_CHECKING`: type checkers, editors and the program
    read one list, and a name that is not there is an error to all of them.

    **Arguments:**

    - `package`: its name; it is being imported.

    **Returns:**

    `(__getattr__, __dir__, __all__)`.
    """
    homes = dict(_imports(ast.parse(inspect.getsource(sys.modules[package]))))

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return __getattr__, __dir__, sorted(homes)


def _imports(module: ast.Module) -> Iterator[tuple[str, str]]:
    """The names under `if TYPE_CHECKING`, each with the module that has it."""
    for block in module.body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for statement in block.body:
                assert isinstance(statement, ast.ImportFrom) and statement.module
                for alias in statement.names:
                    yield alias.name, statement.module
