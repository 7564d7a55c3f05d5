"""What a memory remembers: observations that a value depends on, traces, and eigenvalues."""

from agents.analysis.pictures import draw_eigenvalues, draw_sensitivity, draw_traces
from agents.analysis.recurrence import context_period, eigenvalues, trace_durability
from agents.analysis.sensitivity import (
    cumulative_sensitivity,
    episode_sensitivities,
    relative_sensitivity,
    value_memory_length,
    value_sensitivity,
)

__all__ = [
    "context_period",
    "cumulative_sensitivity",
    "draw_eigenvalues",
    "draw_sensitivity",
    "draw_traces",
    "eigenvalues",
    "episode_sensitivities",
    "relative_sensitivity",
    "trace_durability",
    "value_memory_length",
    "value_sensitivity",
]
