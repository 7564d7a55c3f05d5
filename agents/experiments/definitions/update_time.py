"""Time of an update over the steps that TBPTT looks back, at every step and in batches."""

import zoo
from agents.experiments.claims import Ratio
from agents.experiments.experiment import Experiment, Lines, Scale
from agents.learning import RTRL, TBPTT

LENGTHS = (1, 4, 16, 64, 256)
MEMORIES = {"RTU": zoo.spec("rtu", hidden=64), "GRU": zoo.spec("gru", hidden=64)}

EXPERIMENT = Experiment(
    name="update_time",
    question="How does the time of a step grow with the steps that credit reaches back?",
    source="Elelimy et al. (2024), figure 3",
    kind="cost",
    algorithm="streaming_td",
    environments={
        "every step": {"env": "trace_conditioning", "rollout_length": 256},
        "in batches": {
            "algorithm": "ppo",
            "env": "RepeatPreviousEasy",
            "num_envs": 4,
            "rollout_length": 256,
        },
    },
    variants={
        "RTU, RTRL": {"memory": MEMORIES["RTU"], "gradient": RTRL(1)},
        **{
            f"{name}, TBPTT({length})": {"memory": memory, "gradient": TBPTT(length)}
            for name, memory in MEMORIES.items()
            for length in LENGTHS
        },
    },
    scales={
        "quick": Scale(2_048, 2),
        "small": Scale(8_192, 5),
        "full": Scale(81_920, 20),
    },
    measure="best",
    metric="microseconds per step",
    falls=True,
    claims=(
        Ratio(
            text="At every step, TBPTT(256) of a GRU takes at least 8 times the time of TBPTT(16).",
            one="GRU, TBPTT(256)",
            other="GRU, TBPTT(16)",
            above=8.0,
            environments=("every step",),
        ),
        Ratio(
            text="At every step, RTRL takes less than twice the time of TBPTT(1).",
            one="RTU, RTRL",
            other="RTU, TBPTT(1)",
            below=2.0,
            environments=("every step",),
        ),
        Ratio(
            text="At every step, TBPTT(64) of a GRU takes over 8 times the time of RTRL.",
            one="GRU, TBPTT(64)",
            other="RTU, RTRL",
            above=8.0,
            environments=("every step",),
        ),
        Ratio(
            text="In batches, TBPTT(256) takes less than twice the time of TBPTT(16).",
            one="GRU, TBPTT(256)",
            other="GRU, TBPTT(16)",
            below=2.0,
            environments=("in batches",),
        ),
        Ratio(
            text="In batches, RTRL takes less than 4 times the time of TBPTT(1) of the same unit.",
            one="RTU, RTRL",
            other="RTU, TBPTT(1)",
            below=4.0,
            environments=("in batches",),
        ),
    ),
    lines=Lines(
        "T, steps that TBPTT looks back",
        {
            "RTU, RTRL": dict.fromkeys(LENGTHS, "RTU, RTRL"),
            **{f"{m}, TBPTT": {t: f"{m}, TBPTT({t})" for t in LENGTHS} for m in MEMORIES},
        },
        log=True,
    ),
    differs=(
        "An iteration is timed with its environment: prediction at every step, and PPO with 4 "
        "epochs over 1,024 steps of another task. 64 units each. The least time of an iteration "
        "in each of the measurements, on two cores, of which other programs took their share; the "
        "paper's machine is another."
    ),
)
