"""The leaderboard: memories on the tasks of POPGym, all with the same settings."""

from agents.experiments.leaderboard.board import (
    BOARD,
    GAMES,
    LEVELS,
    MEMORYLESS,
    entrant,
    tasks,
    twin,
)
from agents.experiments.leaderboard.fill import check_label, fill
from agents.experiments.leaderboard.standing import Standing, standings
from agents.experiments.leaderboard.table import Curve, Table, read_table

__all__ = [
    "BOARD",
    "GAMES",
    "LEVELS",
    "MEMORYLESS",
    "Curve",
    "Standing",
    "Table",
    "check_label",
    "entrant",
    "fill",
    "read_table",
    "standings",
    "tasks",
    "twin",
]
