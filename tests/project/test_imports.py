"""`scan ← rtrl ← zoo ← agents`, and the smaller borders inside `zoo` and `agents`."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.project import source

# Declared distributions whose import name is another one.
IMPORT_NAMES = {"markdown-exec": "markdown_exec", "pillow": "pil"}


def _is_cell(module: str) -> bool:
    return module.startswith("zoo.cells.")


def direction_error(importer: str, imported: str) -> str | None:
    """Why `importer` may not import `imported`, or None if it may."""
    package, target = importer.split(".")[0], imported.split(".")[0]
    if target not in source.PACKAGES:
        return None
    if source.PACKAGES.index(target) > source.PACKAGES.index(package):
        return f"`{package}` must not import `{target}` (scan <- rtrl <- zoo <- agents)"
    if _is_cell(importer) and (
        imported == "zoo"
        or (target == "zoo" and imported.split(".")[1] in _names_of_zoo())
        or (_is_cell(imported) and imported.split(".")[2] != importer.split(".")[2])
    ):
        return "a cell imports neither another cell nor the package `zoo` that holds them all"
    if importer.startswith("agents.envs") and target == "agents":
        inside = imported == "agents.envs" or imported.startswith("agents.envs.")
        if not inside:
            return "`agents.envs` imports no other part of `agents`"
    return None


def _names_of_zoo() -> set[str]:
    """What `from zoo import …` can bring other than a submodule: the re-exported names."""
    path = source.ROOT / "zoo" / "__init__.py"
    modules = {f.stem for f in path.parent.glob("*.py")}
    tree = ast.parse(path.read_text())
    names = {
        a.asname or a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names
    }
    return names - modules


def init_error(text: str) -> str | None:
    """Why an `__init__.py` does more than re-export, or None."""
    for node in ast.parse(text).body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        exports = isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == [
            "__all__"
        ]
        if not (docstring or exports or isinstance(node, ast.Import | ast.ImportFrom)):
            return f"line {node.lineno}: `{ast.unparse(node).splitlines()[0]}` is not a re-export"
    return None


@pytest.mark.parametrize("path", source.files(), ids=source.name)
def test_imports_point_left(path: Path):
    module, is_package = source.module(path), path.name == "__init__.py"
    errors = [
        f"{source.name(path)}:{line}: imports `{imported}`: {why}"
        for line, imported in source.imports(path.read_text(), module, is_package=is_package)
        if (why := direction_error(module, imported))
    ]
    assert not errors, "\n".join(errors)


@pytest.mark.parametrize(
    ("importer", "text"),
    [
        ("scan.linear", "import rtrl"),
        ("scan.linear", "from zoo.cells.rtu import RTU"),
        ("rtrl.dense", "def f():\n    from zoo import cell"),
        ("zoo.cell", "import agents.envs"),
        ("zoo.cells.rtu", "from zoo.cells.gru import GRU"),
        ("zoo.cells.rtu", "from zoo.cells import gru"),
        ("zoo.cells.rtu", "from zoo import GRU"),
        ("zoo.cells.rtu", "import zoo"),
        ("zoo.cells.rtu", "from . import gru"),
        ("zoo.cells.rtu", "from .gru import GRU"),
        ("agents.envs.repeat", "from agents.returns import gae"),
        ("agents.envs.repeat", "from .. import returns"),
    ],
)
def test_a_wrong_import_is_found(importer: str, text: str):
    found = list(source.imports(text, importer))
    assert any(direction_error(importer, imported) for _, imported in found)


@pytest.mark.parametrize(
    ("importer", "text"),
    [
        ("scan.linear", "import jax\nfrom scan._linear_methods import solve"),
        ("rtrl.dense", "import scan\nfrom . import structure"),
        ("zoo.cells.rtu", "from zoo.cell import AbstractCell\nfrom zoo import kinds\nimport rtrl"),
        ("zoo.registry", "from zoo.cells.rtu import RTU"),
        ("agents.envs.repeat", "from agents.envs import registry\nfrom .base import Base"),
        ("agents.ppo", "import zoo\nfrom agents.envs import make"),
    ],
)
def test_a_right_import_passes(importer: str, text: str):
    found = list(source.imports(text, importer))
    assert not [why for _, i in found if (why := direction_error(importer, i))]


@pytest.mark.parametrize(
    "path", [p for p in source.files() if p.name == "__init__.py"], ids=source.name
)
def test_init_only_re_exports(path: Path):
    assert init_error(path.read_text()) is None


@pytest.mark.parametrize("text", ["x = 1", "def f(): ...", "import jax\njax.config.update('a', 1)"])
def test_an_init_that_does_more_is_found(text: str):
    assert init_error(text)


def _declared() -> set[str]:
    project = tomllib.loads((source.ROOT / "pyproject.toml").read_text())["project"]
    names = [re.match(r"[\w.-]+", d).group().lower() for d in project["dependencies"]]  # type: ignore
    return {IMPORT_NAMES.get(n, n.replace("-", "_")) for n in names}


def undeclared(text: str, importer: str) -> list[str]:
    """Third-party packages that a module imports at its top level without a declaration.

    An optional dependency is imported inside the function that needs it.
    """
    top = [n for n in ast.parse(text).body if isinstance(n, ast.Import | ast.ImportFrom)]
    tree = "\n".join(ast.unparse(n) for n in top)
    roots = {i.split(".")[0] for _, i in source.imports(tree, importer)}
    return sorted(
        r
        for r in roots
        if r not in sys.stdlib_module_names
        and r not in source.PACKAGES
        and r.lower() not in _declared()
    )


@pytest.mark.parametrize("path", source.files(), ids=source.name)
def test_imports_are_declared(path: Path):
    assert undeclared(path.read_text(), source.module(path)) == []


def test_an_undeclared_import_is_found():
    assert undeclared("import jax\nimport os\nfrom brax import envs", "agents.ppo") == ["brax"]
