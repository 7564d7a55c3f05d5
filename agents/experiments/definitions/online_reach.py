"""How long a delay may be that is learned at every step."""

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Scale
from agents.learning import RTRL, TBPTT

LENGTHS = (8, 16, 32, 64, 128)
_RTU = zoo.spec("rtu", hidden=16, r_max=0.85)

EXPERIMENT = Experiment(
    name="online_reach",
    question="Over how many steps does exact credit learn to remember, at every step, and over how "
    "many TBPTT?",
    source="Ours",
    algorithm="streaming_ac",
    base={
        "env": "MemoryChain-bsuite",
        "head_size": 16,
        "adaptive": True,
        "rollout_length": 10_000,
    },
    environments={
        f"{length} steps": {"env_options": {"memory_length": length}} for length in LENGTHS
    },
    variants={
        "RTRL": {"memory": _RTU, "gradient": RTRL()},
        "TBPTT(1)": {"memory": _RTU, "gradient": TBPTT(1)},
        "TBPTT(8)": {"memory": _RTU, "gradient": TBPTT(8)},
    },
    scales={
        "quick": Scale(10_000, 2),
        "small": Scale(400_000, 10),
        "full": Scale(4_000_000, 20),
    },
    claims=(
        Better(
            text="Over 32 steps exact credit learns, and one step of it does not.",
            better="RTRL",
            than="TBPTT(1)",
            by=0.5,
            environments=("32 steps",),
        ),
        Better(
            text="Over 32 steps exact credit learns more than eight steps of it.",
            better="RTRL",
            than="TBPTT(8)",
            environments=("32 steps",),
        ),
        *(
            Better(
                text=f"Over {length} steps exact credit learns more than one step of it.",
                better="RTRL",
                than="TBPTT(1)",
                environments=(f"{length} steps",),
            )
            for length in (16, 64, 128)
        ),
    ),
    differs="One cell, with traces that begin with at most .85 of themselves left after a step.",
)
