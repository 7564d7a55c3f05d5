"""Networks with a memory, and the distributions of actions; no algorithm."""

from agents.networks.distributions import Categorical, Distribution, Gaussian, MultiCategorical
from agents.networks.heads import ActorCritic
from agents.networks.inputs import Features, Inputs
from agents.networks.layers import Linear, TwoLayers
from agents.networks.recurrent import Recurrent, actor_critic

__all__ = [
    "ActorCritic",
    "Categorical",
    "Distribution",
    "Features",
    "Gaussian",
    "Inputs",
    "Linear",
    "MultiCategorical",
    "Recurrent",
    "TwoLayers",
    "actor_critic",
]
