"""Where the source stands, and its modules."""

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
    """The dotted name of a file: `zoo/stack.py` is `zoo.stack`, `zoo/__init__.py` is `zoo`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_package(module: str) -> bool:
    """Whether a dotted name is a folder's."""
    return (ROOT / module.replace(".", "/")).is_dir()
