"""The ways to solve an elementwise linear recurrence: each file solves it and its adjoint."""

from scan.methods import kernel as kernel
from scan.methods import loop as loop
from scan.methods import tree as tree

__all__ = ["kernel", "loop", "tree"]
