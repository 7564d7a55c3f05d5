"""Reinforcement learning with a memory: environments, gradients, agents, and how to run them."""

from typing import TYPE_CHECKING

from agents import gymnax_import as gymnax_import
from agents.lazy import attach

if TYPE_CHECKING:
    from agents import acting as acting
    from agents import algorithms as algorithms
    from agents import analysis as analysis
    from agents import envs as envs
    from agents import learning as learning
    from agents import networks as networks
    from agents import running as running
    from agents.acting import Policy as Policy
    from agents.agent import AbstractAgent as AbstractAgent
    from agents.agent import AgentState as AgentState
    from agents.agent import Report as Report
    from agents.algorithms import DQN as DQN
    from agents.algorithms import PPO as PPO
    from agents.algorithms import PQN as PQN
    from agents.algorithms import R2AC as R2AC
    from agents.algorithms import SAC as SAC
    from agents.algorithms import TD3 as TD3
    from agents.algorithms import IdealPolicyIteration as IdealPolicyIteration
    from agents.algorithms import StreamingAC as StreamingAC
    from agents.algorithms import StreamingQ as StreamingQ
    from agents.algorithms import StreamingTD as StreamingTD
    from agents.algorithms import Tabular as Tabular
    from agents.algorithms import TabularActorCritic as TabularActorCritic
    from agents.algorithms import register as register
    from agents.learning import BPTT as BPTT
    from agents.learning import RTRL as RTRL
    from agents.learning import TBPTT as TBPTT
    from agents.networks import Recurrent as Recurrent
    from agents.running.errors import TrainingDiverged as TrainingDiverged
    from agents.running.load import load_policy as load_policy
    from agents.running.train import TrainResult as TrainResult
    from agents.running.train import train as train
else:
    # The command line begins with this package: it has to speak before what takes seconds is there.
    __getattr__, __dir__, __all__ = attach(__name__)
