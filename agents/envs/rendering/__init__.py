"""Pictures of states: the general parts. Families register what draws their environments."""

from .film import save_gif
from .frame import draw, render

__all__ = ["draw", "render", "save_gif"]
