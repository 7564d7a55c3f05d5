"""Lines that cannot be written, of work that goes on."""

import contextlib
import errno
import io
import sys

from rich.progress import Progress

from agents.running.output import lasting_console, printable
from tests.agents.tasks import closed_pipe


def test_a_line_that_nobody_reads_is_lost(monkeypatch):
    with closed_pipe() as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        console = lasting_console()
        console.print("one")
        with Progress(console=console) as progress:
            progress.add_task("nothing", total=1)
        assert not console.is_terminal and not console.quiet
    # Closing has written what was left, to nowhere.


def test_a_full_disk_loses_lines_and_nothing_else(monkeypatch):
    stream = open("/dev/full", "w")  # noqa: SIM115
    monkeypatch.setattr(sys, "stderr", stream)
    console = lasting_console(stderr=True)
    for _ in range(2):
        console.print("a line")
    with contextlib.suppress(OSError):
        stream.close()


def test_what_can_be_written_is(monkeypatch):
    text = io.StringIO()
    monkeypatch.setattr(sys, "stdout", text)
    lasting_console(markup=False).print("[one]")
    assert text.getvalue() == "[one]\n"
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)  # as of a program without a window
    lasting_console(stderr=True).print("nowhere")
    lasting_console().print("nowhere")


def test_a_stream_that_is_no_file_may_break_too(monkeypatch):
    class Broken(io.StringIO):
        def write(self, text):
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(sys, "stdout", Broken())
    lasting_console().print("nowhere")


def test_control_characters_are_escaped():
    assert printable("gravity, ε") == "gravity, ε"
    assert printable("a\x1b[2J") == r"'a\x1b[2J'"
