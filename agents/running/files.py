"""Files that are written whole or not at all."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file so that a crash leaves either the old file or the new one.

    **Raises:**

    `OSError` if it cannot be written. The file that was there is then untouched.
    """
    path = Path(path)
    temporary = temporary_name(path)
    with naming(path):
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            # On a full disk it stands in the way of everything else.
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        # The rename itself is durable only once the folder is on the disk too.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextlib.contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Let errors of the system name the file, which those of a full disk do not."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def temporary_name(path: Path) -> Path:
    """Return the name beside `path` under which `write_whole` prepares it."""
    return path.with_name(path.name + ".tmp")
