"""What `zoo.prove` does: the plain loop, the probes and the checks of a memory's promises."""

from zoo.proofs.loop import plain_loop as plain_loop
from zoo.proofs.loop import plain_step as plain_step
from zoo.proofs.loop import surrogate_step as surrogate_step
from zoo.proofs.losses import difference as difference
from zoo.proofs.losses import of_state as of_state
from zoo.proofs.losses import total as total
from zoo.proofs.report import Check as Check
from zoo.proofs.report import ProofError as ProofError
from zoo.proofs.report import Report as Report

__all__ = [
    "Check",
    "ProofError",
    "Report",
    "difference",
    "of_state",
    "plain_loop",
    "plain_step",
    "surrogate_step",
    "total",
]
