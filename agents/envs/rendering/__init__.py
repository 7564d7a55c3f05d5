"""Pictures of environments; importing the package registers what draws each of them."""

from . import boards, cards, control, memory, rooms, sequences
from .film import save_brax_html, save_gif
from .frame import render

__all__ = [
    "boards",
    "cards",
    "control",
    "memory",
    "render",
    "rooms",
    "save_brax_html",
    "save_gif",
    "sequences",
]
