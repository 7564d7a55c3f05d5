"""Output of work that goes on where nobody reads it any more."""

import contextlib
import errno
import os
import sys
from typing import Any

from rich.console import Console

# Who read has ended, which Windows has another word for, or the terminal is closed.
_GONE = (errno.EPIPE, errno.EIO, *([errno.EINVAL] if os.name == "nt" else []))


def lasting_console(*, stderr: bool = False, **options: Any) -> Console:
    """Return a console that raises nothing where a line cannot be written.

    rich ends the process at a broken pipe, as it does where Ctrl-C ends `tee` together with what
    writes to it: training would end without the checkpoint that Ctrl-C asks for.

    **Arguments:**

    - `stderr`: whether to print to that, and not to standard output.
    - `options`: others of `rich.console.Console`.
    """
    stream = sys.stderr if stderr else sys.stdout
    file: Any = None if stream is None else _Lasting(stream)  # rich knows what to do without one
    return Console(file=file, stderr=stderr, **options)


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
        if error.errno not in _GONE:
            return
        # What the stream still holds would fail again when the process ends.
        with contextlib.suppress(AttributeError, OSError, ValueError):  # of one that is no file
            number = self._stream.fileno()
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)


def printable(text: str) -> str:
    """Escape control characters, which a terminal would obey: a text may be a stranger's."""
    return text if text.isprintable() else ascii(text)
