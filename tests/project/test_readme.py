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
SHORTER = {
    "steps=1_000_000, seeds=3": "steps=64, seeds=1",
    "discount=0.9,": "discount=0.9, num_envs=4, rollout_length=16,",
}


def _blocks(language: str, text: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


@pytest.mark.slow
def test_readme_code_runs(tmp_path: Path):
    """Every block, in one process of its own as a reader has it, on numbers of 32 bits."""
    blocks = _blocks("python", README.read_text())
    assert len(blocks) >= 2
    code = "\n".join(blocks)
    for text, shorter in SHORTER.items():
        assert text in code, f"README no longer says {text!r}: change SHORTER too"
        code = code.replace(text, shorter)
    path = os.pathsep.join(filter(None, [str(source.ROOT), os.environ.get("PYTHONPATH")]))
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-4000:]


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
        if not re.search(rf"{flag}(?![\w-])", _helps(command.split()[0]))
    ]


def _helps(subcommand: str) -> str:
    """What tells the flags of a command: `sweep` hands on what it does not know to `train`."""
    return _help(subcommand) + (_help("train") if subcommand == "sweep" else "")


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
