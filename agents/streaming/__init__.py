"""What agents that learn at every step share."""

from agents.streaming.learner import AbstractStreaming

__all__ = ["AbstractStreaming"]
