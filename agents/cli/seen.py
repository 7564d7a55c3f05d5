"""Runs as their folders show them, while other processes train."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agents.running.scalars import Scalars


class Seen(NamedTuple):
    """A run as its folder shows it."""

    config: Mapping[str, Any]
    scalars: "Scalars | None"
    state: str

    def told(self) -> str:
        """How far it has come."""
        done = int(self.scalars.env_steps[-1]) if self.scalars is not None else 0
        planned = self.config.get("steps")
        if not isinstance(planned, int) or not planned:
            return f"{done:,} steps, {self.state}"
        return f"{done:,} of {planned:,} steps, {100 * done // planned} %, {self.state}"


def look(folder: Path) -> Seen:
    """Look at a run.

    **Raises:**

    `ValueError` if the folder holds no run and no process is about to make one of it.
    """
    from agents.running.folder import has_writer
    from agents.running.outline import read_config
    from agents.running.scalars import SCALARS, read_scalars

    # In this order: what ends in the meantime has its last rows written before.
    written = has_writer(folder)
    config = read_config(folder)
    scalars = None
    if not written or (folder / SCALARS).exists():
        scalars = read_scalars(folder)
        scalars = scalars if scalars.iteration.size else None
    if written:  # also where it goes on beyond what was its end
        return Seen(config, scalars, "compiling" if scalars is None else "training")
    planned = config.get("steps")
    done = 0 if scalars is None else scalars.env_steps[-1]
    complete = scalars is not None and isinstance(planned, int) and done >= planned
    return Seen(config, scalars, "complete" if complete else "stopped")
