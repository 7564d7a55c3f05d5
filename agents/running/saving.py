"""How a run's checkpoints are written: in a file by the first process, or in shards by all."""

import abc
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

from agents.running import shards
from agents.running.checkpoint import read_arrays, save, save_described, without_typed_keys
from agents.running.folder import CHECKPOINT, SHARDS
from agents.running.processes import fetch, first_decides, several, writes
from agents.running.programs import shapes

Checkpoints = Literal["plain", "sharded"]


class AbstractSaver(abc.ABC):
    """Writes the checkpoints of a run in a folder.

    **Attributes:**

    - `saved`: the iteration of the last one that is complete.
    """

    saved: int

    @abc.abstractmethod
    def save(self, state: Any, *, config: Mapping, progress: Mapping) -> None:
        """Write a checkpoint, or begin to; the state's memory may be used again after it.

        **Raises:**

        `OSError` if it, or the one before, cannot be written. The last that could be is kept.
        """

    @abc.abstractmethod
    def finish(self) -> None:
        """Wait until all that was begun is written.

        **Raises:**

        `OSError` if it cannot be.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Give back what writing took."""


class PlainSaver(AbstractSaver):
    """All in one file, which the first process writes with the arrays of all."""

    def __init__(self, folder: Path, saved: int):
        self._path, self.saved = folder / CHECKPOINT, saved

    def save(self, state: Any, *, config: Mapping, progress: Mapping) -> None:
        whole = fetch(state) if several() else state
        if writes():
            save(self._path, whole, config=config, progress=progress)
            shards.remove_others(self._path, None)  # of before it was resumed
        self.saved = progress["iteration"]

    def finish(self) -> None:
        pass  # it is, when `save` returns

    def close(self) -> None:
        pass  # nothing stays open


class ShardedSaver(AbstractSaver):
    """Arrays in a folder, to which every process writes its own while training goes on.

    The file is written when the folder is complete, and the older folder is removed after that: the
    file always describes a folder that is there in whole.
    """

    def __init__(self, folder: Path, saved: int):
        self._path, self.saved = folder / CHECKPOINT, saved
        self._writer = shards.Writer()
        self._thread = ThreadPoolExecutor(1)
        self._pending: Future[None] | None = None
        with first_decides():
            if writes():
                # What a process that was killed has left would be in orbax's way.
                there = read_arrays(self._path) if self._path.exists() else b""
                shards.remove_others(self._path, shards.folder_of(self._path, there))

    def save(self, state: Any, *, config: Mapping, progress: Mapping) -> None:
        self.finish()
        folder = self._path.parent / SHARDS / str(progress["iteration"])
        self._writer.begin(folder, without_typed_keys(state))
        like, told = shapes(state), {"config": config, "progress": progress}
        self._pending = self._thread.submit(self._complete, folder, like, told)

    def _complete(self, folder: Path, like: Any, told: Mapping[str, Mapping]) -> None:
        self._writer.end(folder)
        if writes():
            save_described(self._path, like, shards.description(folder), **told)
            shards.remove_others(self._path, folder.name)
        self.saved = told["progress"]["iteration"]

    def finish(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def close(self) -> None:
        self._thread.shutdown()
        self._writer.close()


def saver(kind: Checkpoints, folder: Path, saved: int) -> AbstractSaver:
    """Return what writes the checkpoints of a run, of which so many iterations are saved."""
    return {"plain": PlainSaver, "sharded": ShardedSaver}[kind](folder, saved)
