"""What ruff's rules for missing docstrings cannot see: methods that may inherit theirs, exports."""

import ast
import importlib
import inspect

import pytest

from tests.project import source

MODULES = [source.module(path) for path in source.files()]


def undocumented(kind: type) -> list[str]:
    """The public methods and properties of a class that neither say what they do nor inherit it."""
    return [
        name
        for name, value in vars(kind).items()
        if not name.startswith("_")
        and getattr(value, "__name__", name) == name  # not another name of something else
        and (inspect.isroutine(value) or isinstance(value, property | classmethod | staticmethod))
        and not inspect.getdoc(getattr(kind, name))
    ]


@pytest.mark.parametrize("module", MODULES)
def test_public_methods_have_docstrings_or_inherit_them(module: str):
    kinds = [
        value
        for name, value in vars(importlib.import_module(module)).items()
        if not name.startswith("_") and inspect.isclass(value) and value.__module__ == module
    ]
    missing = {kind.__qualname__: names for kind in kinds if (names := undocumented(kind))}
    assert not missing


class _Documented:
    def method(self):
        """Say so."""


class _Child(_Documented):
    def method(self): ...
    def other(self): ...
    def _private(self): ...
    @property
    def value(self): ...
    @classmethod
    def make(cls): ...


def test_a_missing_docstring_is_found():
    assert undocumented(_Child) == ["other", "value", "make"]


@pytest.mark.parametrize("package", [m for m in MODULES if source.is_package(m)])
def test_exports_exist_and_have_docstrings(package: str):
    """What a package re-exports may be defined by assignment or call: look at the object too."""
    module = importlib.import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value) or callable(value):
            assert inspect.getdoc(value), f"`{package}.{name}` has no docstring"


@pytest.mark.parametrize("package", ["scan", "rtrl", "zoo", "zoo.parts", "zoo.proofs"])
def test_what_a_package_imports_for_others_is_exported(package: str):
    """`import x as x` is what makes a name public for type checkers, `__all__` for `import *`."""
    module = importlib.import_module(package)
    names = {
        alias.name
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name and not alias.name.startswith("_")
    }
    assert names <= {*module.__all__}
