"""How much of what an agent gains by seeing everything it gains by remembering."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from agents.envs.bridges.brax_env import SUFFIXES
from agents.envs.core.hidden import CHOICES
from agents.running.aggregates import OF_SEEDS, bootstrap
from agents.running.outline import as_mapping, outline, read_config
from agents.running.scalars import read_scalars
from agents.running.statistics import smooth

Statistic = Literal["mean", "median", "iqm"]

# Options that hide or show something, with the values that they need not be given.
_USUAL = {"mask": "none", "flicker": 0.0, "observability": CHOICES[0]}
_FULL = {"observability": "full"}
_BRAX = "observe"  # which the name tells


class Gain(NamedTuple):
    """A memory gain: 0 is as good as without memory, 1 as good as seeing everything.

    **Attributes:**

    - `value`: of the runs' statistics over seeds.
    - `low`, `high`: its 95 % bootstrap interval; NaN with fewer than three seeds of any run, and
      where the twin is not better in each bootstrap sample.
    """

    value: float
    low: float
    high: float


def memory_gains(
    runs: Sequence[Path],
    memoryless: Path,
    twin: Path,
    *,
    metric: str,
    smoothing: int = 1,
    statistic: Statistic = "mean",
) -> list[Gain]:
    r"""Compute each run's memory gain from its final values.

    $$\frac{m - m_0}{m_1 - m_0}$$

    with the statistic over seeds $m$ of the run, $m_0$ of an agent without memory in the same
    environment, and $m_1$ of one in its fully observed twin: the environment of brax without `-P`,
    `-V` or `-pomdp`, that of MinAtar without `mask` and `flicker`, others with the option
    `observability="full"`. Seeds are drawn anew in each of the three.

    **Arguments:**

    - `runs`, `memoryless`, `twin`: the runs' folders.
    - `metric`, `smoothing`: of `scalars.csv`, averaged over so many points.

    **Raises:**

    `ValueError` if the environments are not these, or the twin is not better than the agent without
    memory.
    """
    check_environments(runs, memoryless, twin)
    nothing, everything = (_final(x, metric, smoothing) for x in (memoryless, twin))
    least, most = (float(OF_SEEDS[statistic](x)) for x in (nothing, everything))
    if not most > least:
        raise ValueError(
            f"{twin} sees everything and has a {metric} of {most:.3f}, which must be more than "
            f"{least:.3f}, that of {memoryless} without memory: else there is nothing to gain"
        )
    return [
        _gain(_final(run, metric, smoothing), nothing, everything, statistic=statistic)
        for run in runs
    ]


def check_environments(runs: Sequence[Path], memoryless: Path, twin: Path) -> None:
    """Refuse runs that are not of one environment, or whose twin is not this one's.

    **Raises:**

    `ValueError` with the folder and both environments.
    """
    base = _named(memoryless)
    for run in runs:
        if _task(run) != _task(memoryless):
            raise ValueError(
                f"{run} is of {_named(run)} and {memoryless} of {base}: a memory gain is of one "
                "environment"
            )
    (name, options, hidden), (whole, same, seen) = _task(memoryless), _task(twin)
    uncovered = not seen and bool(hidden) and hidden != _FULL
    full = uncovered or (seen == _FULL and hidden != _FULL)
    if (name, options) != (whole, same) or not full:
        raise ValueError(
            f"{twin} is of {_named(twin)}, which is not the fully observed twin of {base}, the "
            f"environment of {memoryless}"
        )


def _gain(scores: np.ndarray, *ends: np.ndarray, statistic: Statistic) -> Gain:
    def gain(*drawn: np.ndarray) -> float:
        middle, least, most = (float(OF_SEEDS[statistic](x)) for x in drawn)
        return (middle - least) / (most - least) if most > least else np.nan

    groups = (scores, *ends)
    if min(map(len, groups)) < 3:
        return Gain(gain(*groups), np.nan, np.nan)
    return Gain(*bootstrap(gain, *(x[:, None] for x in groups)))


def _final(run: Path, metric: str, smoothing: int) -> np.ndarray:
    _, values = read_scalars(run).curve(metric)
    final = smooth(values, smoothing)[-1]
    return final[~np.isnan(final)]


def _named(run: Path) -> str:
    """The environment of a run, in words."""
    name = outline(read_config(run)).environment
    if not name:
        raise ValueError(f"{run} has no config.json that names its environment")
    return name


def _task(run: Path) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Its name and options without those that hide something, and these."""
    agent = as_mapping(read_config(run).get("agent"))
    env, options = agent.get("env"), dict(as_mapping(agent.get("env_options")))
    name = env if isinstance(env, str) else json.dumps(env, sort_keys=True)
    hidden = {k: options.pop(k) for k in _USUAL if k in options}
    hidden = {k: v for k, v in hidden.items() if v != _USUAL[k]}
    for suffix in filter(None, SUFFIXES.values()):
        if name.startswith("brax/") and name.endswith(suffix):
            name, hidden = name.removesuffix(suffix), hidden | {_BRAX: suffix}
    return name, options, hidden
