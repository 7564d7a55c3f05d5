"""A run's folder: what is in it, and whether it may be used."""

from collections.abc import Mapping
from pathlib import Path

from agents.running.checkpoint import differences, read_header
from agents.running.files import temporary_name

CHECKPOINT, CONFIG, PICTURE = "checkpoint.eqx", "config.json", "learning_curve.png"
TENSORBOARD = "tensorboard"


class RunFolderError(ValueError):
    """An output folder that cannot be used; nothing in it was changed."""


def check_folder(folder: Path, config: Mapping, *, resume: bool) -> None:
    """Refuse a folder that is not for this run; change nothing.

    **Raises:**

    - `RunFolderError`: if the folder holds something else, or nothing to resume.
    - `CheckpointError`: if its checkpoint is damaged.
    """
    path = folder / CHECKPOINT
    if folder.exists() and not folder.is_dir():
        raise RunFolderError(f"`out` (={folder}) is a file, not a folder; choose another.")
    if not path.exists():
        if resume:
            raise RunFolderError(
                f"there is nothing to resume in {folder}: it holds no {path.name}."
            )
        # A crash during the very first checkpoint leaves only its temporary file.
        own = {temporary_name(path).name}
        others = sorted({entry.name for entry in folder.glob("*")} - own)
        if others:
            raise RunFolderError(
                f"`out` (={folder}) holds other files ({', '.join(others[:5])}"
                f"{', …' if others[5:] else ''}); choose another folder."
            )
        return
    differing = differences(read_header(path).config, config)
    if differing:
        raise RunFolderError(
            f"`out` (={folder}) holds a run of another configuration; choose another folder. It "
            "differs in:\n" + "\n".join(f"  {line}" for line in differing)
        )
    if not resume:
        raise RunFolderError(
            f"`out` (={folder}) holds a run already; resume it, or choose another folder."
        )
