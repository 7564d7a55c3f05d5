"""Networks with a memory, and the distributions of actions; no algorithm."""

from agents.networks.distributions import (
    Categorical,
    Distribution,
    Gaussian,
    MultiCategorical,
    TanhGaussian,
)
from agents.networks.heads import ActorCritic, PolicyHead, ValueHead
from agents.networks.inputs import Features, Inputs
from agents.networks.layers import Linear, TwoLayers
from agents.networks.recurrent import Recurrent, actor_critic
from agents.networks.sparse import SparseLayers, sparse_recurrent

__all__ = [
    "ActorCritic",
    "Categorical",
    "Distribution",
    "Features",
    "Gaussian",
    "Inputs",
    "Linear",
    "MultiCategorical",
    "PolicyHead",
    "Recurrent",
    "SparseLayers",
    "TanhGaussian",
    "TwoLayers",
    "ValueHead",
    "actor_critic",
    "sparse_recurrent",
]
