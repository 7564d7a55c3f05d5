"""POPGym's environments, in JAX."""

from . import boards, cards, control

__all__ = ["boards", "cards", "control"]
