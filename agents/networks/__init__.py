"""Networks with a memory, and the distributions of actions; no algorithm."""

from agents.networks.continuous import SquashedPolicy, TwinValues, continuous_network
from agents.networks.distributions import (
    Categorical,
    Distribution,
    Gaussian,
    MultiCategorical,
    TanhGaussian,
)
from agents.networks.encoders import Convolutions
from agents.networks.heads import ActorCritic, PolicyHead, ValueHead
from agents.networks.inputs import Features, Inputs
from agents.networks.layers import Linear, TwoLayers
from agents.networks.recurrent import Recurrent, Separate, actor_critic, around_memory
from agents.networks.sparse import SparseLayers, sparse_recurrent
from agents.networks.values import ActionValues, q_network

__all__ = [
    "ActionValues",
    "ActorCritic",
    "Categorical",
    "Convolutions",
    "Distribution",
    "Features",
    "Gaussian",
    "Inputs",
    "Linear",
    "MultiCategorical",
    "PolicyHead",
    "Recurrent",
    "Separate",
    "SparseLayers",
    "SquashedPolicy",
    "TanhGaussian",
    "TwinValues",
    "TwoLayers",
    "ValueHead",
    "actor_critic",
    "around_memory",
    "continuous_network",
    "q_network",
    "sparse_recurrent",
]
