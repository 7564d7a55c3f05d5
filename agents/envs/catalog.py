"""This library's environments: names, classes and what a name fixes."""

from collections.abc import Callable, Mapping
from typing import Any

from gymnax.environments.environment import Environment

from .action_sequence import RECALL, RECALL_FOUR, RECALL_VARIATION, ActionSequence
from .autoencode import Autoencode
from .battleship import Battleship
from .brax_env import LAYOUTS, SUFFIXES, BraxEnvironment
from .cartpole import NoisyPositionOnlyCartPole, PositionOnlyCartPole, VelocityOnlyCartPole
from .concentration import Concentration
from .copy_task import CopyTask
from .count_recall import CountRecall
from .gravity import Gravity
from .hallway_cookie import HallwayCookie
from .hallway_keys import HallwayKeys
from .higher_lower import HigherLower
from .labyrinth_escape import LabyrinthEscape
from .labyrinth_explore import LabyrinthExplore
from .minesweeper import MineSweeper
from .minigrid_memory import MiniGridMemory
from .multiarmed_bandit import MultiarmedBandit
from .pendulum import NoisyPositionOnlyPendulum, PositionOnlyPendulum
from .red_blue_doors import RedBlueDoors
from .repeat_first import RepeatFirst
from .repeat_previous import RepeatPrevious
from .t_maze import TMaze
from .three_state import ThreeState
from .trace_conditioning import TraceConditioning

# Name, class and the constructor's arguments that the name fixes.
Entries = Mapping[str, tuple[Callable[..., Environment], Mapping[str, Any]]]

_CARDS: Entries = {
    "Autoencode": (Autoencode, {}),
    "AutoencodeEasy": (Autoencode, {"decks": 1}),
    "AutoencodeMedium": (Autoencode, {"decks": 2}),
    "AutoencodeHard": (Autoencode, {"decks": 3}),
    "Concentration": (Concentration, {}),
    "ConcentrationEasy": (Concentration, {"decks": 1, "deck_type": "colors"}),
    "ConcentrationMedium": (Concentration, {"decks": 2, "deck_type": "colors"}),
    "ConcentrationHard": (Concentration, {"decks": 1, "deck_type": "ranks"}),
    "CountRecall": (CountRecall, {}),
    "CountRecallEasy": (CountRecall, {"decks": 1, "deck_type": "colors"}),
    "CountRecallMedium": (CountRecall, {"decks": 2, "deck_type": "suits"}),
    "CountRecallHard": (CountRecall, {"decks": 4, "deck_type": "ranks"}),
    "HigherLower": (HigherLower, {}),
    "HigherLowerEasy": (HigherLower, {"decks": 1}),
    "HigherLowerMedium": (HigherLower, {"decks": 2}),
    "HigherLowerHard": (HigherLower, {"decks": 3}),
    "MultiarmedBandit": (MultiarmedBandit, {}),
    "MultiarmedBanditEasy": (MultiarmedBandit, {"arms": 10, "episode_length": 200}),
    "MultiarmedBanditMedium": (MultiarmedBandit, {"arms": 20, "episode_length": 400}),
    "MultiarmedBanditHard": (MultiarmedBandit, {"arms": 30, "episode_length": 600}),
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

_CONTROL: Entries = {
    "PositionOnlyCartPole": (PositionOnlyCartPole, {}),
    "PositionOnlyCartPoleEasy": (PositionOnlyCartPole, {"max_episode_length": 200}),
    "PositionOnlyCartPoleMedium": (PositionOnlyCartPole, {"max_episode_length": 400}),
    "PositionOnlyCartPoleHard": (PositionOnlyCartPole, {"max_episode_length": 600}),
    "VelocityOnlyCartPole": (VelocityOnlyCartPole, {}),
    "VelocityOnlyCartPoleEasy": (VelocityOnlyCartPole, {"max_episode_length": 200}),
    "VelocityOnlyCartPoleMedium": (VelocityOnlyCartPole, {"max_episode_length": 400}),
    "VelocityOnlyCartPoleHard": (VelocityOnlyCartPole, {"max_episode_length": 600}),
    "NoisyPositionOnlyCartPole": (NoisyPositionOnlyCartPole, {}),
    "NoisyPositionOnlyCartPoleEasy": (
        NoisyPositionOnlyCartPole,
        {"max_episode_length": 200, "noise_sigma": 0.1},
    ),
    "NoisyPositionOnlyCartPoleMedium": (
        NoisyPositionOnlyCartPole,
        {"max_episode_length": 200, "noise_sigma": 0.2},
    ),
    "NoisyPositionOnlyCartPoleHard": (
        NoisyPositionOnlyCartPole,
        {"max_episode_length": 200, "noise_sigma": 0.3},
    ),
    "PositionOnlyPendulum": (PositionOnlyPendulum, {}),
    "PositionOnlyPendulumEasy": (PositionOnlyPendulum, {"max_episode_length": 200}),
    "PositionOnlyPendulumMedium": (PositionOnlyPendulum, {"max_episode_length": 150}),
    "PositionOnlyPendulumHard": (PositionOnlyPendulum, {"max_episode_length": 100}),
    "NoisyPositionOnlyPendulum": (NoisyPositionOnlyPendulum, {}),
    "NoisyPositionOnlyPendulumEasy": (
        NoisyPositionOnlyPendulum,
        {"max_episode_length": 200, "noise_sigma": 0.1},
    ),
    "NoisyPositionOnlyPendulumMedium": (
        NoisyPositionOnlyPendulum,
        {"max_episode_length": 200, "noise_sigma": 0.2},
    ),
    "NoisyPositionOnlyPendulumHard": (
        NoisyPositionOnlyPendulum,
        {"max_episode_length": 200, "noise_sigma": 0.3},
    ),
}

_PREDICTION: Entries = {
    "trace_conditioning": (TraceConditioning, {}),
    "copy": (CopyTask, {}),
    "three_state": (ThreeState, {}),
    "t_maze": (TMaze, {}),
}

_REMEMBERING: Entries = {
    "recall": (ActionSequence, {"rewards": RECALL, "title": "recall"}),
    "recall_variation": (
        ActionSequence,
        {"rewards": RECALL_VARIATION, "title": "recall_variation"},
    ),
    "recall_four": (ActionSequence, {"rewards": RECALL_FOUR, "title": "recall_four"}),
    "gravity": (Gravity, {}),
    "hallway_cookie": (HallwayCookie, {}),
    "hallway_keys": (HallwayKeys, {}),
    "MemoryS7": (MiniGridMemory, {"size": 7}),
    "RedBlueDoors-8x8": (RedBlueDoors, {"size": 8}),
}

_BRAX: Entries = {
    **{
        f"brax/{env_name}{SUFFIXES[observe]}": (
            BraxEnvironment,
            {"env_name": env_name, "observe": observe},
        )
        for env_name in LAYOUTS
        for observe in ("all", "positions", "velocities")
    },
    "brax/reacher-pomdp": (BraxEnvironment, {"env_name": "reacher", "observe": "target_once"}),
}

OWN: Entries = {
    **_CARDS,
    **_BOARDS,
    **_CONTROL,
    **_PREDICTION,
    **_REMEMBERING,
    **_BRAX,
}
"""Every environment of this library by name."""
