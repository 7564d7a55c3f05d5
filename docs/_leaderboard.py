"""The leaderboard's page: the standings, every task, and every curve."""

import matplotlib.pyplot as plt
import numpy as np

from agents.cli.tables import with_ends
from agents.experiments import leaderboard
from agents.experiments.leaderboard.board import is_twin
from agents.experiments.leaderboard.standing import scores_of
from docs._helpers import picture

TABLE = leaderboard.read_table()


def _games() -> list[str]:
    return [t for t in dict.fromkeys(r.environment for r in TABLE.rows) if not is_twin(t)]


def cost() -> str:
    """How much was run, and how long it took."""
    seeds = 1 + max(row.seed for row in TABLE.rows)
    steps = max(row.steps for row in TABLE.rows)
    hours = np.nansum(list(TABLE.seconds.values())) / 3600
    return (
        f"{len(TABLE.seconds)} runs so far of a memory on one of {len(_games())} tasks or twins, "
        f"each of {seeds} seeds and {steps:,} steps: {hours:.1f} hours of processor time."
    )


def ranks() -> str:
    """The standings, and on which tasks."""
    tasks, found = leaderboard.standings(TABLE)
    ranked = {s.memory for s in found}
    others = list(dict.fromkeys(r.variant for r in TABLE.rows if r.variant not in ranked))
    missing = f" Not on all of them yet: {', '.join(others)}." if others else ""
    lines = [
        f"Tasks that all of these have run: {', '.join(tasks)}.{missing}",
        "",
        "| memory | mean return | interquartile mean | better than none | memory gain |",
        "|---|---|---|---|---|",
    ]
    for s in found:
        cells = s.memory, with_ends(*s.mean), with_ends(*s.iqm), f"{s.better:.2f}"
        lines.append(f"| {' | '.join(cells)} | {with_ends(*s.gain)} |")
    return "\n".join(lines)


def by_task() -> str:
    """The mean final return of every memory on every task, and of none in the twin."""
    memories = list(dict.fromkeys(row.variant for row in TABLE.rows))
    lines = [
        f"| task | {' | '.join(memories)} | mlp, sees all |",
        "|---|" + "---|" * (len(memories) + 1),
    ]
    for task in _games():
        places = [(task, m) for m in memories] + [(leaderboard.twin(task), leaderboard.MEMORYLESS)]
        cells = [
            f"{scores_of(TABLE, m, (t,)).mean():.3f}" if TABLE.has(t, m) else "–" for t, m in places
        ]
        lines.append(f"| {task} | {' | '.join(cells)} |")
    return "\n".join(lines)


def curves() -> str:
    """A part for each task: the mean over seeds of every memory."""
    tasks, memories = _games(), list(leaderboard.BOARD.variants)
    columns = min(3, len(tasks))
    rows = -(-len(tasks) // columns)
    fig, parts = plt.subplots(rows, columns, figsize=(7.5, 2.1 * rows + 0.8), squeeze=False)
    for axes in parts.flat[len(tasks) :]:
        axes.remove()
    colors = plt.get_cmap("tab20")(np.arange(len(memories)) % 20)
    for axes, task in zip(parts.flat, tasks, strict=False):
        steps = next(r.steps for r in TABLE.rows if r.environment == task)
        for memory, color in zip(memories, colors, strict=True):
            own = [c.values for c in TABLE.curves if (c.environment, c.variant) == (task, memory)]
            if own:
                mean = np.mean(own, axis=0)
                place = (np.arange(len(mean)) + 1) / len(mean) * steps / 1e6
                axes.plot(place, mean, color=color, linewidth=1, label=memory)
        axes.set_title(task, fontsize=9)
        axes.tick_params(labelsize=8)
    lines = {h.get_label(): h for p in parts.flat[: len(tasks)] for h in p.get_lines()}
    fig.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4, fontsize=8)
    for axes in parts.flat[: len(tasks)]:
        axes.set_xlabel("millions of steps", fontsize=8)
    for axes in parts[:, 0]:
        axes.set_ylabel("return", fontsize=8)
    return picture(fig, "Learning curves of every memory on every task.")
