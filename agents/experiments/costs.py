"""What an agent costs: time and memory of its iterations, as rows of a table."""

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from agents.experiments.experiment import Experiment, Scale
from agents.experiments.results import Row

Program = tuple[Callable[..., Any], Any]


def cost_rows(experiment: Experiment, size: Scale, say: Callable[[str], None]) -> list[Row]:
    """Measure every variant in every environment, in turn: what else the machine does hits all.

    **Arguments:**

    - `size`: `steps` are those of one measurement, in whole iterations; `seeds` is the number of
      measurements.
    - `say`: called with a line for each environment.

    **Returns:**

    A row for each measurement: of its iterations' microseconds per step the median (`final`), the
    least (`best`) and the mean (`area`). Of the memory, arguments, results and scratch space of the
    compiled program together, all three are the same.
    """
    rows = []
    for environment in experiment.environments:
        say(f"{environment}: {size.seeds} measurements of {size.steps:,} steps")
        agents = {v: experiment.agent(environment, v, {}) for v in experiment.variants}
        programs = {v: _program(agent) for v, agent in agents.items()}
        for number in range(size.seeds):
            for variant, agent in agents.items():
                iterations = -(-size.steps // agent.steps_per_iteration)
                if experiment.metric == "megabytes":
                    found = np.array([_megabytes(programs[variant])])
                else:
                    found = _microseconds(programs[variant], iterations)
                    found = found / agent.steps_per_iteration
                numbers = np.median(found), found.min(), found.mean()
                steps = iterations * agent.steps_per_iteration
                rows.append(Row(environment, variant, "", number, steps, *map(float, numbers)))
    return rows


def _program(agent: Any) -> Program:
    """An iteration, compiled, and a state to begin it with."""
    state = jax.jit(lambda key: agent.init(key=key))(jax.random.key(0))
    return jax.jit(agent.iterate).lower(state).compile(), state


def _megabytes(program: Program) -> float:
    sizes = program[0].memory_analysis()
    parts = sizes.temp_size_in_bytes, sizes.argument_size_in_bytes, sizes.output_size_in_bytes
    return sum(parts) / 1e6


def _microseconds(program: Program, iterations: int) -> np.ndarray:
    """The time of each iteration, after one that is not counted."""
    compiled, state = program
    taken = []
    for _ in range(iterations + 1):
        start = time.perf_counter()
        jax.block_until_ready(compiled(state))
        taken.append((time.perf_counter() - start) * 1e6)
    return np.array(taken[1:])
