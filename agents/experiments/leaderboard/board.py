"""What the leaderboard compares: which memories, on what, with which settings."""

import dataclasses

import zoo
from agents.experiments.experiment import Experiment, Scale, Settings
from agents.learning import BPTT, RTRL
from agents.learning.gradients import Gradient

# From what is learned soonest, so that a board that is not full yet says something.
GAMES = (
    "RepeatPrevious",
    "RepeatFirst",
    "CountRecall",
    "PositionOnlyPendulum",
    "PositionOnlyCartPole",
    "Autoencode",
    "HigherLower",
    "LabyrinthEscape",
    "MineSweeper",
    "MultiarmedBandit",
    "Concentration",
    "NoisyPositionOnlyPendulum",
    "NoisyPositionOnlyCartPole",
    "VelocityOnlyCartPole",
    "LabyrinthExplore",
    "Battleship",
)
LEVELS = ("Easy", "Medium", "Hard")
MEMORYLESS = "mlp"
HIDDEN = 64


def tasks(*levels: str) -> tuple[str, ...]:
    """List the tasks of POPGym, in the order in which the board is filled.

    **Arguments:**

    - `levels`: of `LEVELS`; all by default.

    **Raises:**

    `ValueError` for a level that there is not.
    """
    for level in levels:
        if level not in LEVELS:
            raise ValueError(f"`levels` (={level!r}) must be of {', '.join(LEVELS)}.")
    return tuple(game + level for level in levels or LEVELS for game in GAMES)


def twin(task: str) -> str:
    """Name the fully observed twin of a task, as the board has it."""
    return f"{task}, full"


def is_twin(environment: str) -> bool:
    """Tell whether a label of the board is of a fully observed twin."""
    return environment.endswith(", full")


def _with(memory: str, gradient: Gradient | None = None, **options) -> Settings:
    return {"memory": zoo.spec(memory, hidden=HIDDEN, **options), "gradient": gradient or BPTT()}


BOARD = Experiment(
    name="leaderboard",
    question="Which memory learns POPGym's tasks, when all have the same settings?",
    source="Ours, on the tasks of Morad et al. (2023), POPGym",
    algorithm="ppo",
    environments={
        **{task: {"env": task} for task in tasks()},
        **{twin(task): {"env": task, "env_options": {"observability": "full"}} for task in tasks()},
    },
    variants={
        "mlp": _with("mlp"),
        "frame_stack": _with("frame_stack"),
        "gru": _with("gru"),
        "lstm": _with("lstm"),
        "ffm": _with("ffm"),
        "lru": _with("lru"),
        "s5": _with("s5"),
        "rtu": _with("rtu"),
        "rtu, RTRL(8)": _with("rtu", RTRL(8)),
        "mingru": _with("mingru"),
        "linear_attention": _with("linear_attention", keys=16),
        "deltanet": _with("deltanet", keys=16),
    },
    scales={
        "quick": Scale(8_192, 2),
        "small": Scale(2_000_000, 3),
        "full": Scale(15_000_000, 10),
    },
    claims=(),
    differs="One set of settings for all memories, `agents.PPO`'s own with 64 units.",
)
"""All of it; parts of it are run by `fill`."""


def entrant(board: Experiment, label: str, memory: zoo.Spec, gradient: Gradient) -> Experiment:
    """Enter one more memory, with the settings that all have.

    **Raises:**

    `ValueError` for a label that is taken, or that would not stand in a table or name a folder.
    """
    if not label.isprintable() or not label.strip(" ."):
        raise ValueError(f"`label` (={label!r}) must be words.")
    if label in board.variants:
        raise ValueError(f"`label` (={label!r}) must be a new one: the board has it.")
    entered = {label: {"memory": memory, "gradient": gradient}}
    return dataclasses.replace(board, variants={**board.variants, **entered})
