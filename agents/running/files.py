"""Files that are written whole or not at all."""

import os
from pathlib import Path


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file so that a crash leaves either the old file or the new one.

    **Raises:**

    `OSError` if it cannot be written.
    """
    path = Path(path)
    temporary = temporary_name(path)
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    # The rename itself is durable only once the folder is on the disk too.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def temporary_name(path: Path) -> Path:
    """Return the name beside `path` under which `write_whole` prepares it."""
    return path.with_name(path.name + ".tmp")
