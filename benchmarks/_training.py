"""Training without a folder, of which only the reports are wanted."""

from typing import Any

import jax

import agents
from agents.mapped import mapped


def train_seeds(agent: agents.AbstractAgent, seeds: int, iterations: int) -> list[Any]:
    """Train seeds side by side; the report of every iteration, as NumPy arrays `[seeds, ...]`."""
    keys = jax.random.split(jax.random.key(0), seeds)
    state = jax.jit(mapped(lambda key: agent.init(key=key)))(keys)
    iterate = jax.jit(mapped(agent.iterate), donate_argnums=0)
    reports = []
    for _ in range(iterations):
        state, report = iterate(state)
        reports.append(jax.device_get(report))
    return reports
