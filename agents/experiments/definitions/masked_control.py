"""Robots of which only positions, or not the target, are seen, with trace units and with GRUs."""

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Scale
from agents.learning import RTRL, TBPTT

TASKS = (
    "hopper-P",
    "reacher-pomdp",
    "walker2d-V",
    "hopper-V",
    "walker2d-P",
    "ant-P",
    "ant-V",
    "halfcheetah-P",
    "halfcheetah-V",
)

EXPERIMENT = Experiment(
    name="masked_control",
    question="Do trace units with RTRL control half-seen robots better than other memories?",
    source="Elelimy et al. (2024), figures 4 and 5",
    algorithm="ppo",
    base={"discount": 0.99, "num_envs": 64, "rollout_length": 32, "learning_rate": 3e-4},
    environments={task: {"env": f"brax/{task}"} for task in TASKS},
    variants={
        "RTU, RTRL": {"memory": zoo.spec("rtu", hidden=96), "gradient": RTRL(8)},
        "nonlinear RTU, RTRL": {
            "memory": zoo.spec("rtu", hidden=96, nonlinear=True),
            "gradient": RTRL(8),
        },
        "LRU, RTRL": {"memory": zoo.spec("lru", hidden=64), "gradient": RTRL(8)},
        "GRU, TBPTT": {"memory": zoo.spec("gru", hidden=64), "gradient": TBPTT(8)},
        "no memory": {"memory": zoo.spec("mlp", hidden=96), "gradient": TBPTT(8)},
    },
    scales={
        "quick": Scale(4_096, 2),
        "small": Scale(1_000_000, 5),
        "full": Scale(5_000_000, 10),
    },
    claims=tuple(
        Better(
            text=f"{task}: {unit} with RTRL is better than {other}.",
            better=f"{unit}, RTRL",
            than=other,
            environments=(task,),
        )
        for task in TASKS
        for unit in ("RTU", "nonlinear RTU")
        for other in ("LRU, RTRL", "GRU, TBPTT")
    ),
    differs=(
        "All nine tasks, a million steps of 64 environments by 32 in place of one by 2,048, "
        "one rate for all; actions within ±1, as brax takes them. Observations and rewards are not "
        "normalized and values not clipped; entropy has a weight of .01, not 0; ReLU, not tanh; 4 "
        "minibatches, not 32; the RTU has 12,480 parameters and the GRU 24,832, there 25,000 each."
    ),
)
