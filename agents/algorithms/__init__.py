"""Learning algorithms: the settings, iteration and loss of each."""

from agents.algorithms.dqn import DQN
from agents.algorithms.ideal_policy_iteration import IdealPolicyIteration
from agents.algorithms.names import agent_class, configuration, name_of, names, register
from agents.algorithms.ppo import PPO
from agents.algorithms.pqn import PQN
from agents.algorithms.r2ac import R2AC
from agents.algorithms.sac import SAC
from agents.algorithms.streaming_ac import StreamingAC
from agents.algorithms.streaming_q import StreamingQ
from agents.algorithms.streaming_td import StreamingTD
from agents.algorithms.tabular import Tabular
from agents.algorithms.tabular_actor_critic import TabularActorCritic
from agents.algorithms.td3 import TD3

__all__ = [
    "DQN",
    "PPO",
    "PQN",
    "R2AC",
    "SAC",
    "TD3",
    "IdealPolicyIteration",
    "StreamingAC",
    "StreamingQ",
    "StreamingTD",
    "Tabular",
    "TabularActorCritic",
    "agent_class",
    "configuration",
    "name_of",
    "names",
    "register",
]
