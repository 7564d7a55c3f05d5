"""Trace units with RTRL on cards, against memories with TBPTT."""

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Scale
from agents.learning import RTRL, TBPTT

TASKS = ("Autoencode", "RepeatFirst", "CountRecall", "Concentration", "HigherLower")

EXPERIMENT = Experiment(
    name="popgym_trace_units",
    question="Do trace units with RTRL learn more than other memories on POPGym's cards?",
    source="Elelimy et al. (2024), figure 6",
    algorithm="ppo",
    base={"previous_reward": True, "previous_action": True},
    environments={f"{task}Easy": {"env": f"{task}Easy"} for task in TASKS},
    variants={
        "RTU, RTRL": {"memory": zoo.spec("rtu", hidden=64), "gradient": RTRL(8)},
        "nonlinear RTU, RTRL": {
            "memory": zoo.spec("rtu", hidden=64, nonlinear=True),
            "gradient": RTRL(8),
        },
        "LRU, RTRL": {"memory": zoo.spec("lru", hidden=64), "gradient": RTRL(8)},
        "LRU, TBPTT": {"memory": zoo.spec("lru", hidden=64), "gradient": TBPTT(8)},
        "GRU, TBPTT": {"memory": zoo.spec("gru", hidden=48), "gradient": TBPTT(8)},
    },
    scales={
        "quick": Scale(16_384, 2),
        "small": Scale(1_000_000, 5),
        "full": Scale(5_000_000, 10),
    },
    measure="area",
    claims=tuple(
        Better(
            text=f"{unit} learns more than {other}, over all tasks.",
            better=f"{unit}, RTRL",
            than=other,
        )
        for unit in ("RTU", "nonlinear RTU")
        for other in ("LRU, RTRL", "LRU, TBPTT", "GRU, TBPTT")
    ),
    differs=(
        "POPGym's own rules, from which the paper's ports depart; 64 environments and segments of "
        "8 in place of one environment with 2,048 steps; one rate for all; 64 units behind an "
        "encoder of 64, and about as many parameters for the GRU."
    ),
)
