"""Reinforcement learning with a memory: environments, gradients, PPO, and how to run it."""

from agents import envs as envs
from agents.gradients import BPTT as BPTT
from agents.gradients import RTRL as RTRL
from agents.gradients import TBPTT as TBPTT
from agents.networks import ActorCritic as ActorCritic
from agents.policy import Policy as Policy
from agents.policy import load_policy as load_policy
from agents.ppo import PPO as PPO
from agents.training import TrainingDiverged as TrainingDiverged
from agents.training import TrainResult as TrainResult
from agents.training import train as train

__all__ = [
    "BPTT",
    "PPO",
    "RTRL",
    "TBPTT",
    "ActorCritic",
    "Policy",
    "TrainResult",
    "TrainingDiverged",
    "envs",
    "load_policy",
    "train",
]
