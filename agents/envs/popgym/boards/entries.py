"""The boards and labyrinths by name."""

from ...core.entries import Entries, levels
from .battleship import Battleship
from .labyrinth_escape import LabyrinthEscape
from .labyrinth_explore import LabyrinthExplore
from .minesweeper import MineSweeper

_SHIPS = (2, 3, 3, 4)
_MAZES = {
    "Easy": {"size": 10, "episode_length": 1024},
    "Medium": {"size": 14, "episode_length": 1024},
    "Hard": {"size": 18, "episode_length": 1024},
}

ENTRIES: Entries = {
    **levels(
        "Battleship",
        Battleship,
        Easy={"board_size": 8, "ship_sizes": _SHIPS},
        Medium={"board_size": 10, "ship_sizes": _SHIPS},
        Hard={"board_size": 12, "ship_sizes": _SHIPS},
    ),
    **levels("LabyrinthEscape", LabyrinthEscape, **_MAZES),
    **levels("LabyrinthExplore", LabyrinthExplore, **_MAZES),
    **levels(
        "MineSweeper",
        MineSweeper,
        Easy={"board_size": 4, "num_mines": 2},
        Medium={"board_size": 6, "num_mines": 6},
        Hard={"board_size": 8, "num_mines": 10},
    ),
}
"""By name: class, and the constructor's arguments that the name fixes."""
