"""Learning algorithms: the settings, iteration and loss of each."""

from agents.algorithms.names import agent_class as agent_class
from agents.algorithms.names import name_of as name_of
from agents.algorithms.names import names as names
from agents.algorithms.names import register as register
from agents.algorithms.ppo import PPO as PPO
from agents.algorithms.tabular import Tabular as Tabular

__all__ = ["PPO", "Tabular", "agent_class", "name_of", "names", "register"]
