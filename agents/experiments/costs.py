"""What an agent costs: time and memory of its iterations, as rows of a table."""

import time
from collections.abc import Callable

import jax
import numpy as np

from agents.agent import AbstractAgent
from agents.experiments.experiment import Experiment, Scale
from agents.experiments.results import Row
from agents.learning.schedules import iterations_of


def cost_rows(experiment: Experiment, size: Scale, say: Callable[[str], None]) -> list[Row]:
    """Measure every variant in every environment.

    Variants take turns, an iteration each: what else the machine does hits all of them, and spells
    of it not all iterations of one.

    **Arguments:**

    - `size`: `steps` are those of one measurement, in whole iterations; `seeds` is the number of
      measurements.
    - `say`: called with a line for each environment.

    **Returns:**

    A row for each measurement: of its iterations' microseconds per step the median (`final`), the
    least (`best`) and the mean (`area`). Of the memory, arguments, results and scratch space of the
    compiled program together, all three are the same.
    """
    measure = {"megabytes": _megabytes, "microseconds per step": _microseconds}[experiment.metric]
    rows = []
    for environment in experiment.environments:
        say(f"{environment}: {size.seeds} measurements of {size.steps:,} steps")
        agents = {v: experiment.agent(environment, v, {}) for v in experiment.variants}
        programs = {v: _Program(agent) for v, agent in agents.items()}
        turns = {
            v: iterations_of(size.steps, agent.steps_per_iteration) for v, agent in agents.items()
        }
        for number in range(size.seeds):
            found = {variant: [] for variant in agents}
            for turn in range(max(turns.values())):
                for variant, program in programs.items():
                    if turn < turns[variant]:
                        found[variant].append(measure(program))
            for variant, program in programs.items():
                values = np.array(found[variant])
                numbers = np.median(values), values.min(), values.mean()
                steps = turns[variant] * program.steps
                rows.append(Row(environment, variant, "", number, steps, *map(float, numbers)))
    return rows


class _Program:
    """An iteration of an agent, compiled, and a state to begin it with."""

    def __init__(self, agent: AbstractAgent):
        self.steps = agent.steps_per_iteration
        self.state = jax.jit(lambda key: agent.init(key=key))(jax.random.key(0))
        self.compiled = jax.jit(agent.iterate).lower(self.state).compile()
        self.warm = False


def _megabytes(program: _Program) -> float:
    sizes = program.compiled.memory_analysis()
    if sizes is None:
        raise RuntimeError("XLA gives no account of a program's memory on this platform.")
    parts = sizes.temp_size_in_bytes, sizes.argument_size_in_bytes, sizes.output_size_in_bytes
    return sum(parts) / 1e6


def _microseconds(program: _Program) -> float:
    """The time of one iteration for each of its steps; the very first is not counted."""
    if not program.warm:
        jax.block_until_ready(program.compiled(program.state))
        program.warm = True
    start = time.perf_counter()
    jax.block_until_ready(program.compiled(program.state))
    return (time.perf_counter() - start) * 1e6 / program.steps
