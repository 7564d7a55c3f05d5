"""What agents that learn from replay share."""

from agents.off_policy.actor_critic import AbstractActorCritic
from agents.off_policy.learner import AbstractOffPolicy, Step

__all__ = ["AbstractActorCritic", "AbstractOffPolicy", "Step"]
