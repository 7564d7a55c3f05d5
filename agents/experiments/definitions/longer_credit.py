"""Half-seen robots with credit of whole rollouts, and with a transformer, beside trace units."""

import zoo
from agents.experiments.claims import Better
from agents.experiments.definitions.masked_control import EXPERIMENT as MASKED
from agents.experiments.experiment import Experiment
from agents.learning import TBPTT

TASKS = ("walker2d-V", "hopper-V", "hopper-P", "walker2d-P", "halfcheetah-P")
UNITS = ("RTU, RTRL", "nonlinear RTU, RTRL")
TRUNCATED = ("GRU, TBPTT(32)", "LRU, TBPTT(32)")
TRANSFORMER = "transformer"

EXPERIMENT = Experiment(
    name="longer_credit",
    question="Are trace units ahead of memories whose credit reaches further, on half-seen robots?",
    source="Elelimy et al. (2024), figures 21 and 22",
    algorithm=MASKED.algorithm,
    base=MASKED.base,
    environments={task: MASKED.environments[task] for task in TASKS},
    variants={
        **{unit: MASKED.variants[unit] for unit in UNITS},
        "GRU, TBPTT(32)": {"memory": zoo.spec("gru", hidden=64), "gradient": TBPTT(32)},
        "LRU, TBPTT(32)": {"memory": zoo.spec("lru", hidden=64), "gradient": TBPTT(32)},
        TRANSFORMER: {
            "memory": zoo.spec("transformer", hidden=64, window=32),
            "gradient": TBPTT(32),
        },
        "no memory": MASKED.variants["no memory"],
    },
    scales=MASKED.scales,
    claims=(
        *(
            Better(
                text=f"{task}: {unit} is better than {other}.",
                better=unit,
                than=other,
                environments=(task,),
            )
            for task in TASKS
            for unit in UNITS
            for other in TRUNCATED
        ),
        *(
            Better(
                text=f"{task}: the transformer is worse than {other}.",
                better=other,
                than=TRANSFORMER,
                environments=(task,),
            )
            for task in TASKS
            for other in (*UNITS, *TRUNCATED)
        ),
    ),
    differs=(
        "Five of eight tasks, a million steps of 64 environments by 32 in place of one by 2,048, "
        "so that credit reaches back 32 steps at most; one rate for all; a layer of 64 units for "
        "GPT-2; actions within ±1, as brax takes them."
    ),
)
