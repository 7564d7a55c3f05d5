"""Every public name says what it is for."""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import source

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _decorators(node: Definition) -> set[str]:
    return {ast.unparse(d).split("(")[0].split(".")[-1] for d in node.decorator_list}


def undocumented(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """`(line, qualified name)` of the public functions, classes and methods without a docstring."""

    def visit(body: list[ast.stmt], prefix: str) -> Iterator[tuple[int, str]]:
        for node in body:
            if not isinstance(node, Definition) or node.name.startswith("_"):
                continue
            if _decorators(node) & {"overload", "setter", "deleter", "defjvp", "def_vmap"}:
                continue
            if not (ast.get_docstring(node) or "").strip():
                yield node.lineno, prefix + node.name
            if isinstance(node, ast.ClassDef):
                yield from visit(node.body, f"{prefix}{node.name}.")

    yield from visit(tree.body, "")


def _inherits_docstring(module: str, qualified: str) -> bool:
    """Whether a method overrides a documented one, which then speaks for it."""
    if "." not in qualified:
        return False
    obj = importlib.import_module(module)
    for part in qualified.split("."):
        obj = getattr(obj, part)
    return bool(inspect.getdoc(obj))


@pytest.mark.parametrize("path", source.files(), ids=source.name)
def test_public_names_have_docstrings(path: Path):
    tree = ast.parse(path.read_text())
    module = source.module(path)
    assert ast.get_docstring(tree), f"{source.name(path)}: the module has no docstring"
    missing = [
        f"{source.name(path)}:{line}: `{qualified}` has no docstring"
        for line, qualified in undocumented(tree)
        if not _inherits_docstring(module, qualified)
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize(
    "path", [p for p in source.files() if p.name == "__init__.py"], ids=source.name
)
def test_exports_exist_and_have_docstrings(path: Path):
    """What a package re-exports may be defined by assignment or call: look at the object too."""
    package = importlib.import_module(source.module(path))
    assert hasattr(package, "__all__"), f"{source.name(path)} has no `__all__`"
    for name in package.__all__:
        obj = getattr(package, name)
        if inspect.ismodule(obj) or callable(obj):
            assert inspect.getdoc(obj), f"`{package.__name__}.{name}` has no docstring"


def test_missing_docstrings_are_found():
    text = """
def f(): ...
def g():
    "Documented."
def _private(): ...
class A:
    def m(self):
        "Documented."
    def n(self): ...
    @property
    def p(self): ...
    def __init__(self): ...
"""
    assert [name for _, name in undocumented(ast.parse(text))] == ["f", "A", "A.n", "A.p"]
