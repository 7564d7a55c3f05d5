"""Acting in environments, by anything that chooses actions; it knows no critic."""

from agents.acting.actor import Actor, ActorState, Transition, episode_statistics
from agents.acting.behavior import (
    AbstractBehavior,
    AbstractNetworkBehavior,
    ByChance,
    ByPolicy,
    Decision,
)
from agents.acting.episodes import evaluate
from agents.acting.policy import Policy
from agents.acting.values import ByActor, ByPrediction, ByValues

__all__ = [
    "AbstractBehavior",
    "AbstractNetworkBehavior",
    "Actor",
    "ActorState",
    "ByActor",
    "ByChance",
    "ByPolicy",
    "ByPrediction",
    "ByValues",
    "Decision",
    "Policy",
    "Transition",
    "episode_statistics",
    "evaluate",
]
