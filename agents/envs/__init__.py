"""Environments with gymnax's interface, and by name."""

from .adapter import GymnaxEnvironment
from .battleship import Battleship
from .card_game import CardGame
from .labyrinth import Labyrinth
from .labyrinth_escape import LabyrinthEscape
from .labyrinth_explore import LabyrinthExplore
from .minesweeper import MineSweeper
from .registry import episode_steps, make, names
from .repeat_first import RepeatFirst
from .repeat_previous import RepeatPrevious
from .spaces import MultiDiscrete

__all__ = [
    "Battleship",
    "CardGame",
    "GymnaxEnvironment",
    "Labyrinth",
    "LabyrinthEscape",
    "LabyrinthExplore",
    "MineSweeper",
    "MultiDiscrete",
    "RepeatFirst",
    "RepeatPrevious",
    "episode_steps",
    "make",
    "names",
]
