"""What algorithms learn with, as functions of arrays: gradients, returns, losses, segments."""

from agents.learning.credit import AbstractGradient
from agents.learning.gradients import BPTT, RTRL, TBPTT
from agents.learning.losses import clipped_surrogate, value_loss
from agents.learning.minibatches import epochs_of_minibatches
from agents.learning.returns import discounted_return, gae, lambda_return, vtrace
from agents.learning.segments import to_segments
from agents.learning.tape import Tape, sample_episodes, sample_segments
from agents.learning.targets import polyak

__all__ = [
    "BPTT",
    "RTRL",
    "TBPTT",
    "AbstractGradient",
    "Tape",
    "clipped_surrogate",
    "discounted_return",
    "epochs_of_minibatches",
    "gae",
    "lambda_return",
    "polyak",
    "sample_episodes",
    "sample_segments",
    "to_segments",
    "value_loss",
    "vtrace",
]
