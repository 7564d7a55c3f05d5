"""What algorithms learn with, as functions of arrays: gradients, returns, losses, segments."""

from agents.learning.gradients import BPTT as BPTT
from agents.learning.gradients import RTRL as RTRL
from agents.learning.gradients import TBPTT as TBPTT
from agents.learning.gradients import AbstractGradient as AbstractGradient
from agents.learning.losses import clipped_surrogate as clipped_surrogate
from agents.learning.losses import value_loss as value_loss
from agents.learning.minibatches import epochs_of_minibatches as epochs_of_minibatches
from agents.learning.returns import discounted_return as discounted_return
from agents.learning.returns import gae as gae
from agents.learning.segments import to_segments as to_segments
from agents.learning.statistics import RunningStatistics as RunningStatistics

__all__ = [
    "BPTT",
    "RTRL",
    "TBPTT",
    "AbstractGradient",
    "RunningStatistics",
    "clipped_surrogate",
    "discounted_return",
    "epochs_of_minibatches",
    "gae",
    "to_segments",
    "value_loss",
]
