"""Reinforcement learning with a memory: environments, gradients, agents, and how to run them."""

from agents import envs
from agents.acting import Policy
from agents.agent import AbstractAgent, AgentState, Report
from agents.algorithms import (
    DQN,
    PPO,
    PQN,
    R2AC,
    SAC,
    TD3,
    IdealPolicyIteration,
    StreamingAC,
    StreamingQ,
    StreamingTD,
    Tabular,
    TabularActorCritic,
    register,
)
from agents.learning import BPTT, RTRL, TBPTT
from agents.networks import Recurrent
from agents.running import TrainingDiverged, TrainResult, load_policy, train

__all__ = [
    "BPTT",
    "DQN",
    "PPO",
    "PQN",
    "R2AC",
    "RTRL",
    "SAC",
    "TBPTT",
    "TD3",
    "AbstractAgent",
    "AgentState",
    "IdealPolicyIteration",
    "Policy",
    "Recurrent",
    "Report",
    "StreamingAC",
    "StreamingQ",
    "StreamingTD",
    "Tabular",
    "TabularActorCritic",
    "TrainResult",
    "TrainingDiverged",
    "envs",
    "load_policy",
    "register",
    "train",
]
