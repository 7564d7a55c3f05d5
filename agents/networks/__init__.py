"""Networks with a memory, and the distributions of actions; no algorithm."""

from agents.networks.distributions import Categorical as Categorical
from agents.networks.distributions import Distribution as Distribution
from agents.networks.distributions import Gaussian as Gaussian
from agents.networks.distributions import MultiCategorical as MultiCategorical
from agents.networks.heads import ActorCritic as ActorCritic
from agents.networks.inputs import Features as Features
from agents.networks.inputs import Inputs as Inputs
from agents.networks.layers import Linear as Linear
from agents.networks.layers import TwoLayers as TwoLayers
from agents.networks.recurrent import Recurrent as Recurrent
from agents.networks.recurrent import actor_critic as actor_critic

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
