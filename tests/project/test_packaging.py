"""Versions, bounds and sizes that two files must agree on."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.project import source

PYPROJECT = tomllib.loads((source.ROOT / "pyproject.toml").read_text())["project"]
MAX_LINES = 400
# Built from halves, so that this file does not contain what it forbids.
LEFT_OVER = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
TEXT = {".py", ".md", ".toml", ".yml", ".txt", ".css", ".js", ""}


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


def test_oldest_constraints_are_the_lower_bounds():
    lines = (source.ROOT / ".ci" / "oldest-constraints.txt").read_text().splitlines()
    pins = dict(line.split("#")[0].strip().split("==") for line in lines if "==" in line)
    tools = {"ruff", "pyright"}  # they check the source, which needs no old version of them
    declared = PYPROJECT["dependencies"] + PYPROJECT["optional-dependencies"]["test"]
    for requirement in map(Requirement, declared):
        if requirement.name in tools:
            continue
        lowest = _minimum(requirement)
        assert lowest, f"`{requirement}` has no lower bound"
        assert requirement.name in pins, f"`{requirement.name}` is missing from the constraints"
        assert _release(pins[requirement.name]) == _release(lowest), requirement.name


@pytest.mark.parametrize("path", source.files(), ids=source.name)
def test_files_are_short(path: Path):
    lines = len(path.read_text().splitlines())
    assert lines < MAX_LINES, f"{source.name(path)} has {lines} lines, the limit is {MAX_LINES}"


def test_no_build_products_are_tracked():
    """Every clone downloads what is tracked, for ever."""
    large = [str(p) for p in _tracked() if p.stat().st_size > 500_000 or p.suffix == ".whl"]
    assert not large, large


def test_nothing_is_left_over():
    found = [
        f"{source.name(path)}:{number}: {line.strip()}"
        for path in _tracked()
        if path.suffix in TEXT
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if LEFT_OVER.search(line)
    ]
    assert not found, "\n".join(found)


def test_packages_are_typed_and_in_the_wheel():
    hatch = tomllib.loads((source.ROOT / "pyproject.toml").read_text())["tool"]["hatch"]
    assert tuple(hatch["build"]["targets"]["wheel"]["packages"]) == source.PACKAGES
    for package in source.PACKAGES:
        assert (source.ROOT / package / "py.typed").exists(), f"{package}/py.typed is missing"
