"""What algorithms learn with, as functions of arrays: gradients, returns, losses, segments."""

from agents.learning.gradients import BPTT, RTRL, TBPTT, AbstractGradient
from agents.learning.losses import clipped_surrogate, value_loss
from agents.learning.minibatches import epochs_of_minibatches
from agents.learning.returns import discounted_return, gae
from agents.learning.segments import to_segments

__all__ = [
    "BPTT",
    "RTRL",
    "TBPTT",
    "AbstractGradient",
    "clipped_surrogate",
    "discounted_return",
    "epochs_of_minibatches",
    "gae",
    "to_segments",
    "value_loss",
]
