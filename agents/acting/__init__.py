"""Acting in environments, by anything that chooses actions; it knows no critic."""

from agents.acting.actor import Actor as Actor
from agents.acting.actor import ActorState as ActorState
from agents.acting.actor import Transition as Transition
from agents.acting.actor import episode_statistics as episode_statistics
from agents.acting.behavior import AbstractBehavior as AbstractBehavior
from agents.acting.behavior import ByPolicy as ByPolicy
from agents.acting.behavior import Decision as Decision
from agents.acting.episodes import evaluate as evaluate
from agents.acting.policy import Policy as Policy

__all__ = [
    "AbstractBehavior",
    "Actor",
    "ActorState",
    "ByPolicy",
    "Decision",
    "Policy",
    "Transition",
    "episode_statistics",
    "evaluate",
]
