"""Versions and bounds that two files must agree on, and what no linter counts."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.project import source

PYPROJECT = tomllib.loads((source.ROOT / "pyproject.toml").read_text())["project"]
MAX_LINES = 350


def _tracked() -> list[Path]:
    """Every file of the project; outside a git checkout, those of the packages."""
    git = ["git", "-C", str(source.ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(git, capture_output=True, text=True, check=True).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):
        return source.files()
    return [path for name in listed if name and (path := source.ROOT / name).is_file()]


def _minimum(requirement: Requirement) -> str | None:
    return next((s.version for s in requirement.specifier if s.operator == ">="), None)


def _release(version: str) -> tuple[int, ...]:
    """`1.2.0` and `1.2` are the same release."""
    return tuple(int(n) for n in re.sub(r"(\.0)+$", "", version).split("."))


def test_version_is_the_changelogs_top_entry():
    entries = re.findall(r"^## \[([^]]+)\]", (source.ROOT / "CHANGELOG.md").read_text(), re.M)
    assert entries[0] == PYPROJECT["version"]


def test_version_is_that_of_the_citation():
    citation = (source.ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", citation, re.M) == [PYPROJECT["version"]]


def test_oldest_constraints_are_the_lower_bounds():
    lines = (source.ROOT / ".ci" / "oldest-constraints.txt").read_text().splitlines()
    pins = dict(line.split("#")[0].strip().split("==") for line in lines if "==" in line)
    declared = PYPROJECT["dependencies"] + PYPROJECT["optional-dependencies"]["test"]
    for requirement in map(Requirement, declared):
        lowest = _minimum(requirement)
        assert lowest, f"`{requirement}` has no lower bound"
        assert requirement.name in pins, f"`{requirement.name}` is missing from the constraints"
        assert _release(pins[requirement.name]) == _release(lowest), requirement.name


def test_files_are_short():
    lines = {source.name(p): len(p.read_text().splitlines()) for p in source.files()}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}


def test_packages_only_re_export():
    for path in source.files():
        if path.name != "__init__.py":
            continue
        for node in ast.parse(path.read_text()).body:
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            exports = isinstance(node, ast.Assign) and "__all__" in ast.unparse(node.targets[0])
            late = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            imports = isinstance(node, ast.Import | ast.ImportFrom)
            assert docstring or exports or late or imports, (
                f"{source.name(path)}:{node.lineno}: not a re-export"
            )


def test_no_build_products_are_tracked():
    """Every clone downloads what is tracked, for ever."""
    large = [str(p) for p in _tracked() if p.stat().st_size > 500_000 or p.suffix == ".whl"]
    assert not large, large


@pytest.mark.slow
def test_an_import_brings_nothing_heavy_before_it_is_needed():
    code = """
import sys
from agents.cli.main import main

def absent(*names):
    found = sorted(set(names) & set(sys.modules))
    assert not found, found

try:
    main(["--help"])
except SystemExit:
    pass
heavy = "equinox", "gymnax", "jax", "matplotlib", "numpy", "optax", "zoo"
pictures = "brax", "matplotlib", "pandas", "scipy", "seaborn", "tensorboardX"
absent(*heavy, *pictures)
try:
    main(["train", "--help"])
except SystemExit:
    pass
absent(*pictures)
# What was left out is there for gymnax's own pictures, and for everybody else.
import gymnax.environments.misc.pong as pong, matplotlib.colors, matplotlib.pyplot, seaborn
assert pong.sns.color_palette("Set2") and pong.plt.subplots is matplotlib.pyplot.subplots
assert pong.colors.ListedColormap is matplotlib.colors.ListedColormap
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
