"""Reinforcement learning with a memory: environments, gradients, agents, and how to run them."""

from agents import envs as envs
from agents.acting import Policy as Policy
from agents.agent import AbstractAgent as AbstractAgent
from agents.agent import AgentState as AgentState
from agents.agent import Report as Report
from agents.algorithms import PPO as PPO
from agents.algorithms import Tabular as Tabular
from agents.algorithms import register as register
from agents.learning import BPTT as BPTT
from agents.learning import RTRL as RTRL
from agents.learning import TBPTT as TBPTT
from agents.networks import Recurrent as Recurrent
from agents.running import TrainingDiverged as TrainingDiverged
from agents.running import TrainResult as TrainResult
from agents.running import load_policy as load_policy
from agents.running import train as train

__all__ = [
    "BPTT",
    "PPO",
    "RTRL",
    "TBPTT",
    "AbstractAgent",
    "AgentState",
    "Policy",
    "Recurrent",
    "Report",
    "Tabular",
    "TrainResult",
    "TrainingDiverged",
    "envs",
    "load_policy",
    "register",
    "train",
]
