"""Output of work that goes on where nobody reads it any more."""

import errno
import os
import sys
from typing import Any

from rich.console import Console

_GONE = (errno.EPIPE, errno.EIO)  # who read has ended, or the terminal is closed


def lasting_console(stream: Any = None, **options: Any) -> Console:
    """Return a console that raises nothing where a line cannot be written.

    rich ends the process at a broken pipe, as it does where Ctrl-C ends `tee` together with what
    writes to it: training would end without the checkpoint that Ctrl-C asks for.

    **Arguments:**

    - `stream`: the text stream to print to; standard output by default.
    - `options`: those of `rich.console.Console`.
    """
    stream = sys.stdout if stream is None else stream
    file: Any = None if stream is None else _Lasting(stream)  # rich knows what to do without one
    return Console(file=file, **options)


class _Lasting:
    """A stream of which a line that cannot be written is lost."""

    def __init__(self, stream: Any):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._let_go(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._let_go(error)

    def _let_go(self, error: OSError) -> None:
        # What the stream still holds would fail again when the process ends.
        if error.errno in _GONE:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


def printable(text: str) -> str:
    """Escape control characters, which a terminal would obey: a text may be a stranger's."""
    return text if text.isprintable() else ascii(text)
