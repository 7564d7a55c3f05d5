"""The leaderboard's memories with the rates that two tasks chose, on others."""

from agents.experiments.definitions.tuned_memories import EXPERIMENT as TUNED
from agents.experiments.experiment import Experiment
from agents.experiments.leaderboard import BOARD

TASKS = (
    "CountRecallEasy",
    "NoisyPositionOnlyCartPoleEasy",
    "NoisyPositionOnlyPendulumEasy",
    "MultiarmedBanditEasy",
    "PositionOnlyPendulumEasy",
    "PositionOnlyCartPoleEasy",
    "AutoencodeEasy",
    "HigherLowerEasy",
    "LabyrinthEscapeEasy",
    "VelocityOnlyCartPoleEasy",
    "ConcentrationEasy",
    "MineSweeperEasy",
    "BattleshipEasy",
    "LabyrinthExploreEasy",
)
# What `tuned_memories` chose, for each the best of four on RepeatPreviousEasy and RepeatFirstEasy.
HIGHER = ("lstm", "s5", "mingru", "deltanet")
RATES = {label: 1e-2 if label in HIGHER else 3e-3 for label in BOARD.variants}

EXPERIMENT = Experiment(
    name="tuned_elsewhere",
    question="Does the leaderboard's order stay on other tasks, with the rates that two chose?",
    source="Ours, of the leaderboard's memories and settings",
    algorithm=BOARD.algorithm,
    environments={task: BOARD.environments[task] for task in TASKS},
    variants={
        label: {**settings, "learning_rate": RATES[label]}
        for label, settings in BOARD.variants.items()
    },
    scales=TUNED.scales,
    claims=TUNED.claims,
    differs=(
        "The board's other Easy tasks, half of its steps, and for each memory the rate that was "
        "best on two; the board has 1e-3 for all."
    ),
)
