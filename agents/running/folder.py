"""A run's folder: what is in it, and whether it may be used."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from agents.running.files import temporary_name

CHECKPOINT, CONFIG, PICTURE = "checkpoint.eqx", "config.json", "learning_curve.png"
TENSORBOARD, RUN_ID, TRACKED = "tensorboard", "run_id", "tracked_steps"
LOCK, SHARDS = ".lock", "shards"


class RunFolderError(ValueError):
    """An output folder that cannot be used; nothing in it was changed."""


class FolderTaken(RunFolderError):
    """An output folder that another process or thread writes to."""


def check_folder(folder: Path, stored: Mapping | None, config: Mapping, *, resume: bool) -> None:
    """Refuse a folder that is not for this run; change nothing.

    **Arguments:**

    - `stored`: the configuration in the folder's checkpoint; `None` where there is none.
    - `config`: of this run.
    - `resume`: whether it is to go on with the one in the folder.

    **Raises:**

    `RunFolderError` if the folder holds something else, or nothing to resume.
    """
    # Brings JAX, which who only looks at a folder does not need.
    from agents.running.checkpoint import differences

    path = folder / CHECKPOINT
    if folder.exists() and not folder.is_dir():
        raise RunFolderError(f"`out` (={folder}) is a file, not a folder; choose another.")
    if stored is None:
        if resume:
            raise RunFolderError(
                f"there is nothing to resume in {folder}: it holds no {path.name}."
            )
        # All that a crash during the very first checkpoint leaves.
        own = {temporary_name(path).name, LOCK, SHARDS}
        others = sorted({entry.name for entry in folder.glob("*")} - own)
        if others:
            raise RunFolderError(
                f"`out` (={folder}) holds other files ({', '.join(others[:5])}"
                f"{', …' if others[5:] else ''}); choose another folder."
            )
        return
    differing = differences(stored, config)
    if differing:
        raise RunFolderError(
            f"`out` (={folder}) holds a run of another configuration; choose another folder. It "
            "differs in:\n" + "\n".join(f"  {line}" for line in differing)
        )
    if not resume:
        raise RunFolderError(
            f"`out` (={folder}) holds a run already; resume it, or choose another folder."
        )


@contextlib.contextmanager
def sole_writer(folder: Path, *, wait: float = 0.2) -> Iterator[None]:
    """Keep every other process from writing to a folder, which is made where there is none.

    **Arguments:**

    - `folder`: the folder.
    - `wait`: seconds to wait for another writer; `has_writer` holds the folder for an instant.

    **Raises:**

    `RunFolderError` if it cannot be made, `FolderTaken`, which is one too, if another process or
    thread writes to it already.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(f"`out` (={folder}) cannot be made a folder: {error}") from error
    # The system frees it where its holder dies, however that happens.
    lock = FileLock(folder / LOCK, timeout=wait)
    try:
        lock.acquire()
    except Timeout:
        raise FolderTaken(
            f"another process writes to `out` (={folder}); wait for it, or choose another folder."
        ) from None
    try:
        yield
    finally:
        lock.release()


def folder_name(label: str) -> str:
    """Write a label as the name of a folder."""
    return "".join(c if c.isalnum() or c in "-.=" else "_" for c in label)


def has_writer(folder: Path) -> bool:
    """Tell whether a process writes to a folder now; also where the system does not let one see."""
    if not (folder / LOCK).exists():
        return False
    try:
        with FileLock(folder / LOCK, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # it may only be read
        return _is_held(folder / LOCK)


def _is_held(lock: Path) -> bool:
    try:
        import fcntl

        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return True
    return False
