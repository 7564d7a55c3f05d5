"""Comparisons as data: what is compared, what is claimed, and what came of it."""

from typing import TYPE_CHECKING

from agents.lazy import attach

if TYPE_CHECKING:
    from agents.experiments.claims import AbstractClaim as AbstractClaim
    from agents.experiments.claims import Alike as Alike
    from agents.experiments.claims import Better as Better
    from agents.experiments.claims import Reaches as Reaches
    from agents.experiments.claims import Verdict as Verdict
    from agents.experiments.experiment import Experiment as Experiment
    from agents.experiments.experiment import Scale as Scale
    from agents.experiments.registry import load as load
    from agents.experiments.registry import names as names
    from agents.experiments.results import Row as Row
    from agents.experiments.results import read_rows as read_rows
    from agents.experiments.results import scores as scores
    from agents.experiments.results import verdicts as verdicts
    from agents.experiments.runner import run as run
else:
    __getattr__, __dir__, __all__ = attach(__name__)
