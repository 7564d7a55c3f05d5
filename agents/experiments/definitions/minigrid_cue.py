"""PPO with memories that actions write, where an object at the start says where to go."""

from dataclasses import replace

from agents.experiments.definitions.minigrid_memory import EXPERIMENT as DOORS
from agents.experiments.experiment import Scale

EXPERIMENT = replace(
    DOORS,
    name="minigrid_cue",
    question="Does PPO solve MemoryS7 with observations that it chooses to keep?",
    source="Toro Icarte et al. (2020), figure 6: MemoryS7",
    base={
        **DOORS.base,
        "num_envs": 128,
        "minibatches": 8,
        "learning_rate": 5e-4,
        "entropy_coefficient": 0.012,
        "discount": 0.95,
    },
    environments={"MemoryS7": {"env": "MemoryS7"}},
    scales={**DOORS.scales, "small": Scale(8_000_000, 3)},
    differs=(
        "Eight million steps in place of twenty, a rate of 5e-4 in place of 1e-5, a discount of "
        ".95 in place of .99, 128 environments side by side and an entropy weight of .012, all "
        "chosen on tuning seeds; two hidden layers and the memory's in place of five; the LSTM by "
        "BPTT through 128 steps with the same settings."
    ),
)
