"""Learning algorithms: the settings, iteration and loss of each."""

from agents.algorithms.names import agent_class, name_of, names, register
from agents.algorithms.ppo import PPO
from agents.algorithms.streaming_td import StreamingTD
from agents.algorithms.tabular import Tabular

__all__ = ["PPO", "StreamingTD", "Tabular", "agent_class", "name_of", "names", "register"]
