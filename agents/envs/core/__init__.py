"""What environments are made of: bases, spaces, costly resets."""

from .base import BaseEnvironment
from .lazy_reset import LazyReset
from .one_end import OneEnd
from .spaces import MultiDiscrete

__all__ = ["BaseEnvironment", "LazyReset", "MultiDiscrete", "OneEnd"]
