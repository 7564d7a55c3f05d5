"""What the structure tests know about the source: its files, modules and imports."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("scan", "rtrl", "zoo", "agents")  # each imports only from those to its left


def files() -> list[Path]:
    """Every Python file of the four packages."""
    return [f for package in PACKAGES for f in sorted((ROOT / package).rglob("*.py"))]


def name(path: Path) -> str:
    """The path relative to the repository, as the tests print it."""
    return path.relative_to(ROOT).as_posix()


def module(path: Path) -> str:
    """The dotted name of a file: `zoo/rtu.py` is `zoo.rtu`, `zoo/__init__.py` is `zoo`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: str, importer: str, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Every `(line, dotted name)` that `source` imports, wherever the statement stands.

    `from zoo import rtu` yields `zoo.rtu`, which may be a module or a name in one; relative
    imports are resolved against `importer`.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = importer.split(".") + ([""] if is_package else [])
                above = parents[: len(parents) - node.level]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"
