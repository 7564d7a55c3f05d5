"""Errors of `agents.StreamingTD` on trace conditioning, setting by setting.

`python -m benchmarks.conditioning`. Each row is one change of settings, ten seeds side by side,
each with parameters of its own. The mean squared error against the discounted return goes to a CSV
file, a line for each seed, as soon as a row is done. `--rows "TD(.9)" "TD(0)"` takes some rows
only.
"""

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import agents
import zoo
from benchmarks._command import check_file, check_names, command
from benchmarks._training import train_seeds

# A learned phase that starts within half a radian per step.
_SLOW = {"r_min": 0.5, "max_phase": 0.5}


@dataclass(frozen=True)
class Row:
    """What differs from an RTU of 20 units, TD(.9), RTRL, Adam 1e-3, 200,000 steps, E = 10."""

    memory: dict[str, Any]
    settings: dict[str, Any]
    steps: int = 200_000
    expected_isi: int = 10


def _row(memory: dict[str, Any] | None = None, steps=200_000, expected_isi=10, **settings) -> Row:
    return Row(memory or {}, settings, steps, expected_isi)


ROWS = {
    "TD(.9)": _row(),
    "TD(.9), slow phases": _row(_SLOW),
    "TD(.9), slow phases, longer": _row(_SLOW, steps=2_000_000),
    "TD(.9), slow phases, Adam 3e-4": _row(_SLOW, steps=400_000, learning_rate=3e-4),
    "TD(.9), slow phases, E = 20": _row(_SLOW, expected_isi=20),
    "TD(.9), slow phases, E = 30": _row(_SLOW, expected_isi=30),
    "TD(.9), slow phases, TBPTT(1)": _row(_SLOW, gradient=agents.TBPTT(1)),
    "TD(.9), max_phase=1": _row({"max_phase": 1.0}),
    "TD(.9), silu": _row({"activation": "silu"}),
    "TD(.9), identity": _row({"activation": "identity"}),
    "TD(.9), Adam 3e-3": _row(learning_rate=3e-3),
    "TD(.95)": _row(trace_decay=0.95),
    "TD(0)": _row(trace_decay=0.0),
    "TD(0), slow phases": _row(_SLOW, trace_decay=0.0),
    **{
        f"{name.upper()}, TBPTT(5), Adam {rate}": _row(
            {"name": name, "hidden": hidden}, gradient=agents.TBPTT(5), learning_rate=float(rate)
        )
        for name, hidden in (("gru", 4), ("lru", 6))
        for rate in ("3e-4", "1e-3", "3e-3", "1e-2")
    },
    "no memory": _row({"name": "mlp", "hidden": 20}, gradient=agents.TBPTT(1)),
}


@dataclass(frozen=True)
class Options:
    """Sizes and output."""

    rows: tuple[str, ...] = tuple(ROWS)
    """Names of rows."""
    seeds: int = 10
    """Seeds of every row."""
    steps: int | None = None
    """Steps of every seed; by default those of the row."""
    out: Path = Path("docs/assets/trace-conditioning.csv")
    """The numbers. Rows that stand in it already, of as many steps and seeds, are not measured
    again."""


def run(options: Options) -> dict[str, np.ndarray]:
    """Train, and write the numbers.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:**

    By row, the errors of every tenth of the steps, `[10, seeds]`.
    """
    check_file("out", options.out)
    check_names("rows", options.rows, ROWS)
    if options.steps is not None and (options.steps < 10 or options.steps % 10):
        raise ValueError(f"`steps` (={options.steps}) must be a multiple of 10.")
    known = options.out.read_text() if options.out.exists() else ""
    done = Counter((row, int(steps)) for row, steps, *_ in csv.reader(known.splitlines()[1:]))
    wanted = {name: options.steps or ROWS[name].steps for name in options.rows}
    for name, steps in wanted.items():
        seeds = done[name, steps]
        if seeds not in (0, options.seeds):
            raise ValueError(
                f"`seeds` (={options.seeds}) must be as many as {options.out} has of {name!r}, "
                f"{seeds}. Give another file, or remove its lines from this one."
            )
    errors = {}
    with options.out.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not known:
            writer.writerow(["row", "steps", "seed", *(f"tenth {i}" for i in range(1, 11))])
        for name, steps in wanted.items():
            if done[name, steps]:
                print(f"{name}, {steps:,} steps: in {options.out} already", flush=True)
                continue
            errors[name] = measure(ROWS[name], steps, options.seeds)
            for seed, tenths in enumerate(errors[name].T):
                writer.writerow([name, steps, seed, *(f"{error:.5f}" for error in tenths)])
            file.flush()
            last, all_steps = errors[name][-1], errors[name].mean()
            spread = last.std(ddof=1) / np.sqrt(len(last))
            print(
                f"{name}, {steps:,} steps: {last.mean():.4f} ± {spread:.4f} in the last tenth, "
                f"{all_steps:.4f} over all",
                flush=True,
            )
    return errors


def measure(row: Row, steps: int, seeds: int) -> np.ndarray:
    """One row's errors, `[10, seeds]`."""
    agent = agents.StreamingTD(
        env="trace_conditioning",
        env_options={"expected_isi": row.expected_isi},
        memory=zoo.spec(**{"name": "rtu", "hidden": 20} | row.memory),
        rollout_length=steps // 10,
        **row.settings,
    )
    reports = train_seeds(agent, seeds, 10)
    return np.stack([report.metrics["return_error"] for report in reports])


if __name__ == "__main__":
    command(run, Options, __doc__)
