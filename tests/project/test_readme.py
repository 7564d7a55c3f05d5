"""What README shows can be run: its Python, its commands' flags, its links."""

import contextlib
import functools
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import source

README = source.ROOT / "README.md"
PAGES = [README, *sorted((source.ROOT / "docs").rglob("*.md"))]

# A block that trains is run with less: each of these texts must still stand in README.
SHORTER = {"steps=1_000_000, seeds=3": "steps=4096, seeds=1"}


def _blocks(language: str, text: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def _run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(source.ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "Agg"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True
    )


def _python(code: str, cwd: Path) -> str:
    """Run `code` in a process of its own and return what it printed."""
    done = _run("-c", code, cwd=cwd)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


_CODE = _blocks("python", README.read_text())


@pytest.mark.slow  # `.ci/run` also runs it where only the wheel is installed
@pytest.mark.parametrize("code", [c for c in _CODE if "agents.train" not in c])
def test_readme_code_runs(code: str, tmp_path: Path):
    _python(code, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("code", [c for c in _CODE if "agents.train" in c])
def test_readme_training_code_runs(code: str, tmp_path: Path):
    for text, shorter in SHORTER.items():
        assert text in code, f"README no longer says {text!r}: change SHORTER too"
        code = code.replace(text, shorter)
    _python(code, tmp_path)


def test_readme_has_code():
    assert len(_CODE) >= 2


def test_code_that_raises_is_found(tmp_path: Path):
    with pytest.raises(AssertionError, match="no cell"):
        _python("raise ValueError('no cell')", tmp_path)


@functools.cache
def _help(subcommand: str) -> str:
    """What `python -m agents <subcommand> --help` prints."""
    from agents.__main__ import main

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as done:
        main([subcommand, "--help"])
    assert done.value.code == 0, printed.getvalue()
    return printed.getvalue()


def _commands(text: str) -> list[str]:
    shell = "\n".join(_blocks("(?:bash|console|sh)", text)).replace("\\\n", " ")
    return re.findall(r"python -m agents (\w+.*)$", shell, re.M)


def unknown_flags(text: str) -> list[str]:
    """The flags in a page's commands that the command line does not know."""
    return [
        f"`python -m agents {command}` has no flag {flag}"
        for command in _commands(text)
        for flag in re.findall(r"(?<=\s)--[\w-]+", command)
        if not re.search(rf"{flag}(?![\w-])", _help(command.split()[0]))
    ]


@pytest.mark.parametrize("page", PAGES, ids=source.name)
def test_commands_and_their_flags_exist(page: Path):
    assert not unknown_flags(page.read_text())


def test_an_unknown_flag_is_found():
    text = "```bash\npython -m agents cells\npython -m agents envs --nonsense \\\n  --help\n```"
    assert unknown_flags(text) == [
        "`python -m agents envs --nonsense    --help` has no flag --nonsense"
    ]


@pytest.mark.parametrize("page", [README, source.ROOT / "CONTRIBUTING.md"], ids=source.name)
def test_links_to_files_lead_somewhere(page: Path):
    text = page.read_text()
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", text)
    paths = re.findall(r"`((?:docs|tests|zoo|rtrl|scan|agents|benchmarks)/[\w./-]+)`", text)
    for target in links + [p for p in paths if "<" not in p]:
        assert (source.ROOT / target).exists(), f"{source.name(page)}: {target} does not exist"
