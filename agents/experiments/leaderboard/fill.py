"""Filling the leaderboard: what it lacks is run, run by run."""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agents.experiments.experiment import Experiment
from agents.experiments.leaderboard.table import Table, read_table, write_table
from agents.experiments.results import rows_of, told_lacking
from agents.experiments.runner import (
    REPORTED,
    check_known,
    check_run,
    complete,
    run_folder,
    size_of,
)
from agents.running.folder import CHECKPOINT, FolderTaken, has_writer, sole_writer
from agents.running.progress import Show


def check_label(known: Table, out: Path, tasks: Sequence[str], label: str) -> None:
    """Raise `ValueError` for a label with results of which nobody can say what memory they are of.

    **Arguments:**

    - `known`: what was run before.
    - `out`: the folder for runs.
    - `tasks`: those that the memory is to be run on.
    - `label`: what it is called.
    """
    for task in tasks:
        if known.has(task, label) and not (run_folder(out, task, label) / CHECKPOINT).exists():
            raise ValueError(
                f"`label` (={label!r}) must be a new one: the results have {task} by it, of a run "
                f"that is not in {out}."
            )


def fill(
    board: Experiment,
    known: Table,
    out: Path,
    runs: Sequence[tuple[str, str]],
    *,
    scale: str = "small",
    progress: Show = False,
    say: Callable[[str], None] = lambda text: None,
) -> Table:
    """Run what a table lacks, and write the table after every run.

    A run that diverges, or of which a seed ended no episode, is not in the table. Several processes
    may fill one folder: what one has run, or is running, the others do not run again.

    **Arguments:**

    - `board`: the tasks and memories.
    - `known`: what was run before; it is not run again.
    - `out`: the folder for runs and table. A run that was stopped goes on.
    - `runs`: pairs of labels of `board`'s, a task and a memory, in this order.
    - `scale`: one of `board.scales`.
    - `progress`: as for `agents.train`.
    - `say`: called with a line for each run.

    **Returns:**

    The table with what was run.

    **Raises:**

    `ValueError` for labels or a scale that there are not, and what `agents.train` raises.
    """
    size, table = size_of(board, scale), known
    for task, memory in runs:
        check_known("task", task, board.environments)
        check_known("memory", memory, board.variants)
    for task, memory in runs:
        agent, folder = board.agent(task, memory, {}), run_folder(out, task, memory)
        table = table.joined(read_table(out))
        if table.has(task, memory):
            if (folder / CHECKPOINT).exists():
                check_run(agent, folder, size.seeds, REPORTED)
            continue
        where = str(folder.relative_to(out))
        whole, begun = not (folder / CHECKPOINT).exists(), time.process_time()
        try:
            if has_writer(folder):
                raise FolderTaken
            if not complete(
                agent, folder, size.steps, size.seeds, REPORTED, where, progress=progress, say=say
            ):
                continue
        except FolderTaken:  # also since it was looked at
            say(f"{where}: another process trains it")
            continue
        seconds = time.process_time() - begun if whole else math.nan
        rows = rows_of(board, task, memory, {}, folder)
        if lacking := told_lacking(rows, board.metric):
            say(f"{where}: {lacking}")
            continue
        table = _kept(table.with_run(rows, folder, board.metric, seconds), out)
    return _kept(table, out)


def _kept(table: Table, out: Path) -> Table:
    """Write a table, with what another process may have written since."""
    with sole_writer(out, wait=60.0):
        table = table.joined(read_table(out))
        write_table(out, table)
    return table
