"""The scalars of a run for TensorBoard."""

import contextlib
import itertools
import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from tensorboardX.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]
from tensorboardX.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]
from tensorboardX.record_writer import masked_crc32c

from agents.running.files import naming

_VERSION = "brain.Event:2"


class TensorBoardLog:
    """Scalars to TensorBoard: one sub-run for each seed, and their mean.

    **Arguments:**

    - `folder`: where the event files go.
    - `seeds`: the number of seeds.
    - `purge`: environment steps from which on events already there are void (on resuming).
    """

    def __init__(self, folder: Path, *, seeds: int, purge: int | None = None):
        self._seeds = [_EventFile(folder / f"seed_{seed}", purge) for seed in range(seeds)]
        self._mean = _EventFile(folder / "mean", purge)

    def write(self, env_steps: int, metrics: Mapping[str, np.ndarray], **shared: float) -> None:
        """Write the scalars of one iteration; those that are not numbers are left out.

        **Arguments:**

        - `env_steps`: environment steps so far, for each seed: the horizontal axis.
        - `metrics`: arrays over seeds.
        - `shared`: scalars of the run as a whole, such as its speed.
        """
        for seed, file in enumerate(self._seeds):
            file.write(env_steps, {name: values[seed] for name, values in metrics.items()})
        self._mean.write(env_steps, means_over_seeds(metrics) | shared)

    def close(self) -> None:
        """Close the event files."""
        with contextlib.ExitStack() as closing:
            for file in (*self._seeds, self._mean):
                closing.callback(file.close)


class _EventFile:
    """A file of TensorBoard's records, each written as it comes.

    `tensorboardX.SummaryWriter` writes from a thread of its own, whose errors nobody can catch.
    """

    def __init__(self, folder: Path, purge: int | None):
        folder.mkdir(parents=True, exist_ok=True)
        # A run that is resumed within the second gets another file.
        start = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
        paths = (folder / f"{start}.{number}" for number in itertools.count())
        self._path = next(path for path in paths if not path.exists())
        with naming(self._path):
            self._file = self._path.open("xb")
        self._add(Event(wall_time=time.time(), file_version=_VERSION))
        if purge is not None:
            self._add(Event(step=purge, file_version=_VERSION))
            self._add(Event(step=purge, session_log=SessionLog(status=SessionLog.START)))

    def write(self, step: int, scalars: Mapping[str, float | np.generic]) -> None:
        finite = {name: float(x) for name, x in scalars.items() if np.isfinite(x)}
        values = [Summary.Value(tag=name, simple_value=x) for name, x in finite.items()]
        self._add(Event(step=step, wall_time=time.time(), summary=Summary(value=values)))

    def _add(self, event: Event) -> None:
        data = event.SerializeToString()
        length = struct.pack("<Q", len(data))
        sums = (struct.pack("<I", masked_crc32c(part)) for part in (length, data))
        with naming(self._path):
            self._file.write(length + next(sums) + data + next(sums))
            self._file.flush()

    def close(self) -> None:
        with naming(self._path):
            self._file.close()


def means_over_seeds(metrics: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Average each metric over the seeds that have a value."""
    return {name: mean_over_seeds(values) for name, values in metrics.items()}


def mean_over_seeds(values: np.ndarray) -> float:
    """Average over the seeds that have a value, which is not NaN; NaN where none has."""
    values = np.asarray(values, float)
    present = values[~np.isnan(values)]
    return float(present.mean()) if present.size else float("nan")
