"""Comparisons as data: what is compared, what is claimed, and what came of it."""

from agents.experiments.claims import AbstractClaim, Alike, Better, Ratio, Reaches, Verdict
from agents.experiments.experiment import Experiment, Lines, Scale
from agents.experiments.registry import load, names
from agents.experiments.results import Row, read_rows, scores, verdicts
from agents.experiments.runner import run

__all__ = [
    "AbstractClaim",
    "Alike",
    "Better",
    "Experiment",
    "Lines",
    "Ratio",
    "Reaches",
    "Row",
    "Scale",
    "Verdict",
    "load",
    "names",
    "read_rows",
    "run",
    "scores",
    "verdicts",
]
