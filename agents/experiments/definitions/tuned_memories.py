"""The leaderboard's memories, each with the learning rate that suits it."""

from agents.experiments.claims import Alike, Better
from agents.experiments.experiment import Experiment, Scale
from agents.experiments.leaderboard import BOARD, MEMORYLESS

TASKS = ("RepeatPreviousEasy", "RepeatFirstEasy")
LED = ("lstm", "rtu", "ffm", "deltanet")

EXPERIMENT = Experiment(
    name="tuned_memories",
    question="Does the leaderboard's order stay where every memory has its own learning rate?",
    source="Ours, of the leaderboard's memories and settings",
    algorithm=BOARD.algorithm,
    environments={task: BOARD.environments[task] for task in TASKS},
    variants=BOARD.variants,
    tune={"learning_rate": (3e-4, 1e-3, 3e-3, 1e-2)},
    scales={
        "quick": Scale(8_192, 2, tuning_seeds=1),
        "small": Scale(1_000_000, 3, tuning_seeds=1),
        "full": Scale(15_000_000, 10, tuning_seeds=3),
    },
    claims=(
        *(
            Better(text=f"A GRU is still better than {other}.", better="gru", than=other)
            for other in LED
        ),
        Alike(
            text="RTU by RTRL(8) is as good as by BPTT, within .1.",
            one="rtu, RTRL(8)",
            other="rtu",
            within=0.1,
        ),
        *(
            Better(text=f"{other} learns more than none.", better=other, than=MEMORYLESS)
            for other in ("linear_attention", "mingru")
        ),
    ),
    differs=(
        "Two of the board's tasks, on which most of its order rests, half of its steps, and one of "
        "four rates for each memory, the best on both tasks together for one other seed; the "
        "board has 1e-3 for all."
    ),
)
