"""Who leads, and by how much."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from agents.experiments.claims import FEWEST
from agents.experiments.leaderboard.board import MEMORYLESS, is_twin, twin
from agents.experiments.leaderboard.table import Table
from agents.running.aggregates import bootstrap, iqm, mean, probability_of_improvement

Interval = tuple[float, float, float]
LEAST = 0.05
"""Of a return between -1 and 1, what all runs of a twin are better by where a gain means much."""


@dataclass(frozen=True)
class Standing:
    """A memory's place on the board.

    **Attributes:**

    - `mean`, `iqm`: of the final return over tasks and seeds, with its 95 % interval by the
      stratified bootstrap; intervals are NaN of fewer than three seeds.
    - `better`: the probability that a run is better than one without memory on the same task.
    - `gain`: the mean over tasks of the memory gain, `(m - m0) / (m1 - m0)` for the mean `m` of the
      memory, `m0` of none, and `m1` of none in the fully observed twin, with its interval. Tasks
      count where all runs of the twin are better than all without memory by more than 0.05; NaN
      where there are none, and 0 of no memory, by definition, with both ends.
    """

    memory: str
    mean: Interval
    iqm: Interval
    better: float
    gain: Interval


def standings(table: Table, tasks: Sequence[str] = ()) -> tuple[tuple[str, ...], list[Standing]]:
    """Order the memories by their mean, all on the same tasks.

    Where not every memory has run every task, it is the largest part of the table without holes
    that counts: of the memories that have run most.

    **Arguments:**

    - `table`: the results.
    - `tasks`: to count only these.

    **Returns:**

    The tasks that are counted, and the memories that have run them all, the best first.

    **Raises:**

    `ValueError` where no task has been run without memory.
    """
    common, memories = _full_part(table, tasks)
    if not common:
        raise ValueError(f"`table` has no task{' of these' * bool(tasks)} with {MEMORYLESS!r}.")
    scores = {memory: scores_of(table, memory, common) for memory in memories}
    gainful = _gainful(table, common)
    found = [
        Standing(
            memory,
            _interval(mean, values),
            _interval(iqm, values),
            probability_of_improvement(values, scores[MEMORYLESS]),
            _gain(table, memory, gainful),
        )
        for memory, values in scores.items()
    ]
    return common, sorted(found, key=lambda s: -s.mean[0])


def _interval(aggregate: Callable[..., float], *scores: np.ndarray) -> Interval:
    if min(map(len, scores)) < FEWEST:  # an interval of one run would be the run
        return aggregate(*scores), np.nan, np.nan
    return bootstrap(aggregate, *scores)


def _full_part(table: Table, tasks: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Find the tasks and memories, the memoryless one among them, of most runs without a hole."""
    rows = [row for row in table.rows if not is_twin(row.environment)]
    seen = dict.fromkeys(row.environment for row in rows if not tasks or row.environment in tasks)
    ran = {m: [t for t in seen if table.has(t, m)] for m in dict.fromkeys(r.variant for r in rows)}
    if MEMORYLESS not in ran:
        return (), []
    order = sorted(ran, key=lambda m: (m != MEMORYLESS, -len(ran[m])))
    best: tuple[tuple[str, ...], list[str]] = (), []
    for count in range(1, len(order) + 1):
        memories = order[:count]
        common = tuple(t for t in seen if all(t in ran[m] for m in memories))
        if len(common) * count >= len(best[0]) * len(best[1]):
            best = common, memories
    return best


def scores_of(table: Table, memory: str, tasks: Sequence[str]) -> np.ndarray:
    """Return final returns of a memory, `[seeds, tasks]`."""
    columns: list[list[float]] = [
        [r.final for r in table.rows if (r.environment, r.variant) == (task, memory)]
        for task in tasks
    ]
    counts = {task: len(column) for task, column in zip(tasks, columns, strict=True)}
    if len(set(counts.values())) > 1:
        raise ValueError(
            f"`table` must have as many seeds of {memory!r} in all tasks, not {counts}."
        )
    return np.array(columns).T


def _gainful(table: Table, tasks: Sequence[str]) -> tuple[str, ...]:
    """List the tasks whose twin was run, and is better without memory by more than `LEAST`.

    In every seed, so that no sample of them divides by next to nothing.
    """

    def gained(task: str) -> float:
        without = scores_of(table, MEMORYLESS, (task,)).max()
        return float(scores_of(table, MEMORYLESS, (twin(task),)).min() - without)

    run = [task for task in tasks if table.has(twin(task), MEMORYLESS)]
    return tuple(task for task in run if gained(task) > LEAST)


def _gain(table: Table, memory: str, tasks: Sequence[str]) -> Interval:
    if not tasks:
        return np.nan, np.nan, np.nan
    if memory == MEMORYLESS:  # drawn twice, as the memory and as none, it would differ from itself
        return 0.0, 0.0, 0.0
    ends = (scores_of(table, MEMORYLESS, names) for names in (tasks, [twin(t) for t in tasks]))

    def gain(values: np.ndarray, least: np.ndarray, most: np.ndarray) -> float:
        low = least.mean(axis=0)
        return float(np.mean((values.mean(axis=0) - low) / (most.mean(axis=0) - low)))

    return _interval(gain, scores_of(table, memory, tasks), *ends)
