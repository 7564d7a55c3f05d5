"""What a memory remembers: observations that a value depends on, traces, and eigenvalues."""

from agents.analysis.pictures import draw_eigenvalues as draw_eigenvalues
from agents.analysis.pictures import draw_sensitivity as draw_sensitivity
from agents.analysis.pictures import draw_traces as draw_traces
from agents.analysis.recurrence import context_period as context_period
from agents.analysis.recurrence import eigenvalues as eigenvalues
from agents.analysis.recurrence import trace_durability as trace_durability
from agents.analysis.sensitivity import cumulative_sensitivity as cumulative_sensitivity
from agents.analysis.sensitivity import episode_sensitivities as episode_sensitivities
from agents.analysis.sensitivity import relative_sensitivity as relative_sensitivity
from agents.analysis.sensitivity import value_memory_length as value_memory_length
from agents.analysis.sensitivity import value_sensitivity as value_sensitivity

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
