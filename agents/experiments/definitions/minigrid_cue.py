"""PPO with memories that actions write, where an object at the start says where to go."""

from dataclasses import replace

from agents.experiments.definitions.minigrid_memory import EXPERIMENT as DOORS
from agents.experiments.experiment import Scale

EXPERIMENT = replace(
    DOORS,
    name="minigrid_cue",
    question="Does PPO solve MemoryS7 with observations that it chooses to keep?",
    source="Toro Icarte et al. (2020), figure 6: MemoryS7",
    environments={"MemoryS7": {"env": "MemoryS7"}},
    scales={**DOORS.scales, "small": Scale(10_000_000, 3)},
    differs=DOORS.differs.replace("Three", "Ten"),
)
