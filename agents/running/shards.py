"""Arrays of a checkpoint in a folder, where every process writes what lies on its own devices.

[Orbax](https://orbax.readthedocs.io) writes them while training goes on. What the checkpoint's file
holds instead of the arrays is here too: the folder's name, and size and checksum of each of its
files, so that damage is found before anything of it is believed.
"""

import contextlib
import errno
import json
import os
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from agents.running.errors import CheckpointError
from agents.running.folder import SHARDS
from agents.running.processes import first_decides, writes
from zoo.annotations import fitted

_MARK = b"arrays in a folder\n"  # those of a plain checkpoint begin otherwise, as NumPy's do
_PIECE = 2**20  # bytes


class Writer:
    """Writes arrays in the background, one checkpoint at a time.

    **Raises:**

    `ModuleNotFoundError` if orbax is missing, with the line that installs it.
    """

    def __init__(self):
        ocp = orbax()
        self._save_args = ocp.args.PyTreeSave
        self._orbax = ocp.AsyncCheckpointer(ocp.PyTreeCheckpointHandler())

    def begin(self, folder: Path, arrays: Any) -> None:
        """Begin to write a pytree of arrays; once this returns they may change."""
        with _as_errors_of_the_system(folder):
            self._orbax.save(folder.absolute(), args=self._save_args(_numbered(arrays)))

    def end(self, folder: Path) -> None:
        """Wait until all processes have written theirs."""
        with _as_errors_of_the_system(folder):
            self._orbax.wait_until_finished()

    def close(self) -> None:
        """End the threads of orbax; what is still being written is waited for."""
        self._orbax.close()


def description(folder: Path) -> bytes:
    """Return what a checkpoint's file holds of arrays that are in a folder."""
    files = {name: [path.stat().st_size, _checksum(path)] for name, path in _files(folder)}
    return _MARK + json.dumps({"folder": folder.name, "files": files}).encode()


def described(content: bytes) -> bool:
    """Tell whether a checkpoint's bytes are a description, and not the arrays."""
    return content.startswith(_MARK)


def read(path: Path, content: bytes, like: Any, where: Any = None) -> Any:
    """Read arrays of a description; all processes of a job have to call.

    **Arguments:**

    - `path`: the checkpoint's file.
    - `like`: a pytree of shapes and dtypes.
    - `where`: of the same structure, on which devices each is to lie, of which a process then reads
      its own part; `None` for this process's default one.

    **Raises:**

    `CheckpointError` if a file is missing or damaged.
    """
    folder, files = _parsed(path, content)
    with first_decides():
        if writes():
            _check(folder, files)
    ocp = orbax()
    leaves, structure = jax.tree.flatten(like)
    if where is None:
        wanted = [ocp.RestoreArgs(restore_type=np.ndarray) for _ in leaves]
    else:
        wanted = [
            ocp.ArrayRestoreArgs(sharding=place, global_shape=x.shape, dtype=x.dtype)
            for x, place in zip(leaves, jax.tree.leaves(where), strict=True)
        ]
    reader = ocp.Checkpointer(ocp.PyTreeCheckpointHandler())
    numbered = _numbered(leaves)
    how = ocp.args.PyTreeRestore(numbered, restore_args={i: wanted[int(i)] for i in numbered})
    try:
        found = reader.restore(folder.absolute(), args=how)
    except (OSError, ValueError, KeyError, TypeError) as error:
        line = str(error).partition("\n")[0]
        raise CheckpointError(f"{folder} is not what orbax reads here: {line[:200]}") from error
    finally:
        reader.close()
    # A copy: the program that gets it uses its memory again, which must not be NumPy's.
    own = lambda x: jax.numpy.array(x) if where is None else x  # noqa: E731
    both = enumerate(leaves)
    arrays = [own(found[str(i)]) if x.size else np.zeros(x.shape, x.dtype) for i, x in both]
    return jax.tree.unflatten(structure, arrays)


def remove_others(path: Path, kept: str | None) -> None:
    """Remove the arrays of other checkpoints than the one in a file, whole or half written.

    **Arguments:**

    - `kept`: the name of its folder; `None` if it has none.
    """
    for entry in (path.parent / SHARDS).glob("*"):
        if entry.name != kept:
            shutil.rmtree(entry, ignore_errors=True)
    if kept is None:
        with contextlib.suppress(OSError):  # there is none
            (path.parent / SHARDS).rmdir()


def folder_of(path: Path, content: bytes) -> str | None:
    """Return the name of the folder that a checkpoint's bytes describe, if they do."""
    return _parsed(path, content)[0].name if described(content) else None


def _numbered(arrays: Any) -> dict[str, Any]:
    # Their names are in the checkpoint's header. Orbax refuses arrays without elements.
    return {str(i): x for i, x in enumerate(jax.tree.leaves(arrays)) if x.size}


def _parsed(path: Path, content: bytes) -> tuple[Path, dict[str, list[int]]]:
    # The file may be a stranger's: what it names is to be beside it, and a checksum proves nothing.
    try:
        found = fitted("found", json.loads(content[len(_MARK) :]), dict[str, Any])
        name, files = found["folder"], fitted("files", found["files"], dict[str, list[int]])
        if any(len(pair) != 2 for pair in files.values()) or not name.isdecimal():
            raise ValueError(name)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise CheckpointError(f"{path} is damaged: it does not say where its arrays are.") from None
    return path.parent / SHARDS / name, files


def _check(folder: Path, files: dict[str, list[int]]) -> None:
    there = dict(_files(folder))
    if missing := sorted(files.keys() - there.keys()):
        raise CheckpointError(f"{folder} is damaged: {missing[0]} is missing.")
    for name, (size, checksum) in files.items():
        try:
            same = there[name].stat().st_size == size and _checksum(there[name]) == checksum
        except FileNotFoundError:  # removed meanwhile
            raise CheckpointError(f"{folder} is damaged: {name} is missing.") from None
        if not same:
            raise CheckpointError(f"{folder} is damaged: {name} does not match its checksum.")


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            checksum = zlib.crc32(piece, checksum)
    return checksum


@contextlib.contextmanager
def _as_errors_of_the_system(folder: Path) -> Iterator[None]:
    # Orbax's libraries give errors of the system, such as a full disk, as their own.
    try:
        yield
    except jax.errors.JaxRuntimeError:
        raise  # of another process
    except (ValueError, RuntimeError) as error:
        full = "No space left" in str(error)
        code, line = errno.ENOSPC if full else errno.EIO, str(error).partition("\n")[0]
        raise OSError(code, os.strerror(code) if full else line[:200], str(folder)) from error


def orbax() -> Any:
    """Return the package that writes shards, `orbax.checkpoint`.

    **Raises:**

    `ModuleNotFoundError` if it is missing, with the line that installs it.
    """
    try:
        import orbax.checkpoint
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "checkpoints in shards need orbax-checkpoint: pip install 'trace-zoo[orbax]'"
        ) from error
    return orbax.checkpoint
