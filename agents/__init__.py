"""Reinforcement learning with a memory: environments, gradients, PPO, and how to run it."""

from agents import envs as envs
from agents.gradients import BPTT as BPTT
from agents.gradients import RTRL as RTRL
from agents.gradients import TBPTT as TBPTT
from agents.networks import ActorCritic as ActorCritic
from agents.ppo import PPO as PPO

__all__ = ["BPTT", "PPO", "RTRL", "TBPTT", "ActorCritic", "envs"]
