"""What each learner with a memory learns, beside the same learner without one.

`python -m benchmarks.learning dqn`. Five seeds of both are trained; the numbers go to
`docs/assets/NAME.csv`, the picture to `docs/assets/NAME.png`: the mean over seeds
and its 95 % confidence interval, of the greedy policy's return in fresh episodes.
"""

import csv
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

import agents
import zoo
from agents.experiments.definitions import pendulum_memory
from agents.learning.schedules import iterations_of
from agents.running.curves import learning_curve
from agents.running.scalars import read_scalars
from benchmarks._command import check_names

_CARDS = {"env": "RepeatPreviousEasy", "discount": 0.5}
_PENDULUM: dict[str, Any] = {"env": "PositionOnlyPendulumEasy", **pendulum_memory.EXPERIMENT.base}
_DQN: dict[str, Any] = {
    "num_envs": 8,
    "updates": 4,
    "learning_rate": 2e-3,
    "target_kept": 0.98,
    "epsilon": 0.5,
    "epsilon_end": 0.05,
    "epsilon_steps": 20_000,
}
_PQN: dict[str, Any] = {
    "num_envs": 32,
    "rollout_length": 64,
    "learning_rate": 3e-3,
    "epsilon_steps": 50_000,
}


@dataclass(frozen=True)
class Comparison:
    """The class of a learner, its memory, its settings, and the steps that each seed has."""

    kind: Any
    memory: zoo.Spec
    settings: dict[str, Any]
    steps: int


COMPARISONS = {
    "dqn": Comparison(agents.DQN, zoo.spec("lru", hidden=32), _CARDS | _DQN, 25_600),
    "pqn": Comparison(agents.PQN, zoo.spec("rtu", hidden=32), _CARDS | _PQN, 61_440),
    "sac": Comparison(
        agents.SAC, zoo.spec("gru", hidden=16), _PENDULUM | pendulum_memory.OWN["sac"], 28_000
    ),
    "td3": Comparison(agents.TD3, zoo.spec("gru", hidden=16), _PENDULUM, 36_000),
}


@dataclass(frozen=True)
class Options:
    """What is trained."""

    names: tyro.conf.Positional[tuple[str, ...]] = tuple(COMPARISONS)
    """Names of comparisons."""
    seeds: int = 5
    """Seeds of each run."""
    steps: int | None = None
    """Environment steps of each seed; by default those of the comparison."""
    out: Path = Path("docs/assets")
    """Folder for numbers and pictures."""


def run(options: Options) -> dict[str, dict[str, np.ndarray]]:
    """Train, write and draw.

    **Returns:**

    The last return of every seed, by comparison and memory.
    """
    check_names("names", options.names, COMPARISONS)
    options.out.mkdir(parents=True, exist_ok=True)
    return {name: compare(name, COMPARISONS[name], options) for name in options.names}


def compare(name: str, what: Comparison, options: Options) -> dict[str, np.ndarray]:
    """Train one comparison's two runs; see `run`."""
    last, rows = {}, []
    with tempfile.TemporaryDirectory() as folder:
        runs = {}
        for memory in (what.memory, zoo.spec("mlp", hidden=what.memory.hidden)):
            agent = what.kind(**what.settings, memory=memory)
            steps = options.steps or what.steps
            iterations = iterations_of(steps, agent.steps_per_iteration)
            runs[memory.name] = Path(folder) / memory.name
            result = agents.train(
                agent,
                steps=steps,
                seeds=options.seeds,
                out=runs[memory.name],
                evaluate_every=max(1, iterations // 10),
                evaluation_episodes=32,
                checkpoint_every=iterations,
                progress=False,
            )
            last[memory.name] = result.metrics["evaluation_return"]
            print(name, memory.name, steps, np.round(last[memory.name], 3), flush=True)
            steps_at, values = read_scalars(runs[memory.name]).curve("evaluation_return")
            rows += [
                [memory.name, int(step), seed, f"{value:.4f}"]
                for step, returns in zip(steps_at, values, strict=True)
                for seed, value in enumerate(returns)
            ]
        title = f"{what.kind.__name__} on {what.settings['env']}"
        learning_curve(runs, options.out / f"{name}.png", metric="evaluation_return", title=title)
    with open(options.out / f"{name}.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["memory", "environment steps", "seed", "evaluation return"])
        writer.writerows(rows)
    return last


if __name__ == "__main__":
    run(tyro.cli(Options, description=__doc__))
