"""What the command line says of itself and of what it left behind, and where it keeps programs."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from filelock import FileLock

from agents.cli import cache, main
from agents.cli.main import program, version
from agents.running import TrainingInterrupted, checkpoint


def test_versions_can_be_told(capsys):
    assert main(["--version"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"trace-zoo {version()} (Python {sys.version.split()[0]}, jax ")
    assert version("no-such-package") == "(not installed)"


def test_a_help_text_that_is_read_no_further_is_no_error():
    reads, writes = os.pipe()
    os.close(reads)
    words = [sys.executable, "-m", "agents", "--help"]
    done = subprocess.run(words, stdout=writes, stderr=subprocess.PIPE, text=True)
    os.close(writes)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize(
    ("called", "name"),
    [("/usr/bin/trace-zoo", "trace-zoo"), ("/x/agents/__main__.py", "python -m agents")],
)
def test_the_program_calls_itself_what_it_was_called(called, name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [called])
    assert program() == name
    with pytest.raises(SystemExit):
        main(["--help"])
    assert f"usage: {name} " in capsys.readouterr().out


def test_a_process_of_its_own_has_loops_compiled_whole(monkeypatch, capsys):
    whole = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=10000000"
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/x")
    command = lambda out: out.print("done")  # noqa: E731
    monkeypatch.setattr(sys.modules["agents.cli.main"], "parse_command", lambda words: command)
    assert main(["cells"]) == 0  # in a process of somebody else
    assert os.environ["XLA_FLAGS"] == "--xla_dump_to=/x"
    monkeypatch.setattr(sys, "argv", ["trace-zoo", "cells"])
    assert main() == 0
    assert os.environ["XLA_FLAGS"] == f"--xla_dump_to=/x {whole}"
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_extra_options=xla_cpu_small=1")
    assert main() == 0
    assert os.environ["XLA_FLAGS"] == "--xla_backend_extra_options=xla_cpu_small=1"
    assert capsys.readouterr().out.count("done") == 3


@pytest.fixture
def stopping(monkeypatch):
    """A function that lets every command be stopped by an exception before it begins."""

    def arrange(error):
        def parse_command(words):
            raise error

        monkeypatch.setattr(sys.modules["agents.cli.main"], "parse_command", parse_command)

    return arrange


def test_a_training_stopped_at_once_says_what_it_left(stopping, tmp_path, capsys):
    stopping(KeyboardInterrupt())
    words = ["train", "--env", "gravity", "--out", str(tmp_path), "--progress", "none"]
    assert main(words) == 130
    left = "stopped at once: nothing was saved, the same command begins anew\n"
    assert capsys.readouterr().err == left
    path, done = tmp_path / "checkpoint.eqx", {"iteration": 3, "env_steps": 3000}
    checkpoint.save(path, {}, config={}, progress=done)
    assert main([*words, "--resume"]) == 130
    assert capsys.readouterr().err.splitlines() == [
        f"stopped at once. {path} holds iteration 3. To go on:",
        f"python -m agents train --env gravity --out {tmp_path} --progress none --resume",
    ]
    checkpoint.save(path, {}, config={"agent": {"env": "gymnasium/Ant-v5"}}, progress=done)
    assert main(words) == 130
    assert capsys.readouterr().err == (
        f"stopped at once. {path} holds iteration 3. Environments of gymnasium cannot go back to "
        "where they were. Its policy can be loaded.\n"
    )


def test_a_training_that_was_asked_to_stop_says_how_to_go_on(stopping, capsys):
    stopping(TrainingInterrupted("stopped after iteration 2 of 4.", 15))
    assert main(["train", "--out", "a b", "--progress", "none"]) == 143
    assert capsys.readouterr().err.splitlines() == [
        "stopped after iteration 2 of 4. To go on:",
        "python -m agents train --out 'a b' --progress none --resume",
    ]


@pytest.mark.parametrize(
    ("words", "greets"),
    [
        ("train --out a", True),
        ("train --out a --progress none", False),
        ("train --out a --progress=none", False),
        ("train --help", False),
        ("evaluate a", False),  # nobody looks: stderr is no terminal
        ("cells", False),
    ],
)
def test_what_takes_long_to_begin_says_so_first(words, greets, stopping, capsys):
    stopping(ValueError("the end"))
    assert main(words.split()) == 2
    first, *rest = capsys.readouterr().err.splitlines()
    assert (first == f"trace-zoo {version()}: train …") == greets
    assert [first, *rest][-1] == "the end"


def test_the_cache_is_in_the_users_folder_or_where_it_is_told(monkeypatch, tmp_path):
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_folder() == tmp_path / "trace-zoo" / "compiled"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.cache_folder() == tmp_path / ".cache" / "trace-zoo" / "compiled"
    monkeypatch.setenv(cache.VARIABLE, "elsewhere")
    assert cache.cache_folder() == Path("elsewhere")
    monkeypatch.setenv(cache.VARIABLE, "")
    assert cache.cache_folder() is None


@pytest.fixture
def without_cache(monkeypatch):
    """JAX as it begins where nobody has told it of a cache."""
    names = (
        "jax_compilation_cache_dir",
        "jax_compilation_cache_max_size",
        "jax_persistent_cache_min_compile_time_secs",
    )
    before = {name: getattr(jax.config, name) for name in names}
    for name in names:
        monkeypatch.delenv(name.upper(), raising=False)
    jax.config.update("jax_compilation_cache_dir", None)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def test_programs_are_kept_unless_the_user_says_otherwise(without_cache, monkeypatch, tmp_path):
    folder = tmp_path / "a" / "b"
    monkeypatch.setenv(cache.VARIABLE, str(folder))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_MAX_SIZE", "5")
    size = jax.config.jax_compilation_cache_max_size
    assert main(["evaluate", str(tmp_path / "none"), "--no-cache"]) == 2
    assert jax.config.jax_compilation_cache_dir is None
    assert main(["evaluate", str(tmp_path / "none")]) == 2
    assert jax.config.jax_compilation_cache_dir == str(folder)
    assert folder.is_dir() and folder.stat().st_mode & 0o077 == 0
    assert jax.config.jax_compilation_cache_max_size == size
    assert jax.config.jax_persistent_cache_min_compile_time_secs == 0.1
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "other"))
    cache.keep_compiled()
    assert jax.config.jax_compilation_cache_dir == str(folder)


def test_a_program_that_was_not_written_to_the_end_does_not_end_the_cache(
    without_cache, monkeypatch, tmp_path
):
    """JAX keeps no other program beside one without the time of its last use."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    for name in ("torn-cache", "whole-cache", "whole-atime"):
        (tmp_path / name).write_bytes(bytes(8))
    names = lambda: {path.name for path in tmp_path.iterdir()} - {".lockfile"}  # noqa: E731
    with FileLock(tmp_path / ".lockfile"):  # somebody writes
        cache.keep_compiled()
        assert names() == {"torn-cache", "whole-cache", "whole-atime"}
    jax.config.update("jax_compilation_cache_dir", None)
    cache.keep_compiled()
    assert names() == {"whole-cache", "whole-atime"}


def test_a_folder_that_cannot_be_used_is_not_used(without_cache, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file" / "a"))
    cache.keep_compiled()
    assert jax.config.jax_compilation_cache_dir is None


def test_a_character_that_the_terminal_lacks_is_replaced(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii"))
    monkeypatch.setattr(
        sys.modules["agents.cli.main"], "parse_command", lambda _: lambda out: out.print("a … b")
    )
    assert main(["cells"]) == 0
    sys.stdout.flush()
    assert written.getvalue() == b"a ? b\n"
