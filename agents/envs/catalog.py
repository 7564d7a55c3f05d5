"""This library's environments: names, classes and what a name fixes."""

from collections.abc import Callable, Mapping
from typing import Any

from gymnax.environments.environment import Environment

from .battleship import Battleship
from .labyrinth_escape import LabyrinthEscape
from .labyrinth_explore import LabyrinthExplore
from .minesweeper import MineSweeper
from .repeat_first import RepeatFirst
from .repeat_previous import RepeatPrevious

# Name, class and the constructor's arguments that the name fixes.
Entries = Mapping[str, tuple[Callable[..., Environment], Mapping[str, Any]]]

_CARDS: Entries = {
    "RepeatFirst": (RepeatFirst, {}),
    "RepeatFirstEasy": (RepeatFirst, {"decks": 1}),
    "RepeatFirstMedium": (RepeatFirst, {"decks": 8}),
    "RepeatFirstHard": (RepeatFirst, {"decks": 16}),
    "RepeatPrevious": (RepeatPrevious, {}),
    "RepeatPreviousEasy": (RepeatPrevious, {"decks": 1, "k": 4}),
    "RepeatPreviousMedium": (RepeatPrevious, {"decks": 2, "k": 32}),
    "RepeatPreviousHard": (RepeatPrevious, {"decks": 3, "k": 64}),
}

_BOARDS: Entries = {
    "Battleship": (Battleship, {}),
    "BattleshipEasy": (Battleship, {"board_size": 8, "ship_sizes": (2, 3, 3, 4)}),
    "BattleshipMedium": (Battleship, {"board_size": 10, "ship_sizes": (2, 3, 3, 4)}),
    "BattleshipHard": (Battleship, {"board_size": 12, "ship_sizes": (2, 3, 3, 4)}),
    "LabyrinthEscape": (LabyrinthEscape, {}),
    "LabyrinthEscapeEasy": (LabyrinthEscape, {"size": 10, "episode_length": 1024}),
    "LabyrinthEscapeMedium": (LabyrinthEscape, {"size": 14, "episode_length": 1024}),
    "LabyrinthEscapeHard": (LabyrinthEscape, {"size": 18, "episode_length": 1024}),
    "LabyrinthExplore": (LabyrinthExplore, {}),
    "LabyrinthExploreEasy": (LabyrinthExplore, {"size": 10, "episode_length": 1024}),
    "LabyrinthExploreMedium": (LabyrinthExplore, {"size": 14, "episode_length": 1024}),
    "LabyrinthExploreHard": (LabyrinthExplore, {"size": 18, "episode_length": 1024}),
    "MineSweeper": (MineSweeper, {}),
    "MineSweeperEasy": (MineSweeper, {"board_size": 4, "num_mines": 2}),
    "MineSweeperMedium": (MineSweeper, {"board_size": 6, "num_mines": 6}),
    "MineSweeperHard": (MineSweeper, {"board_size": 8, "num_mines": 10}),
}

_CONTROL: Entries = {}

_PREDICTION: Entries = {}

_REMEMBERING: Entries = {}

_BRAX: Entries = {}

OWN: Entries = {
    **_CARDS,
    **_BOARDS,
    **_CONTROL,
    **_PREDICTION,
    **_REMEMBERING,
    **_BRAX,
}
"""Every environment of this library by name."""
