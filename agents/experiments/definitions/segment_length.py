"""RTRL against TBPTT over the length of a segment."""

import zoo
from agents.experiments.claims import Alike, Better
from agents.experiments.experiment import Experiment, Scale
from agents.learning import BPTT, RTRL, TBPTT

EXPERIMENT = Experiment(
    name="segment_length",
    question="How long must a segment be for TBPTT, and how long for RTRL?",
    source="Irie et al. (2024), table 1: returns over M, the steps between two updates",
    algorithm="ppo",
    base={
        "memory": zoo.spec("rtu", hidden=64),
        "encoder_size": 0,
        "discount": 0.9,
    },
    environments={"RepeatPrevious(k=8)": {"env": "RepeatPrevious", "env_options": {"k": 8}}},
    variants={
        "RTRL(1)": {"gradient": RTRL(1)},
        "RTRL(4)": {"gradient": RTRL(4)},
        "RTRL(16)": {"gradient": RTRL(16)},
        "TBPTT(1)": {"gradient": TBPTT(1)},
        "TBPTT(4)": {"gradient": TBPTT(4)},
        "TBPTT(16)": {"gradient": TBPTT(16)},
        "BPTT": {"gradient": BPTT()},
    },
    scales={
        "quick": Scale(16_384, 2),
        "small": Scale(500_000, 5),
        "full": Scale(5_000_000, 10),
    },
    claims=(
        Better(
            text="With segments shorter than what is asked for, RTRL learns more than TBPTT.",
            better="RTRL(4)",
            than="TBPTT(4)",
        ),
        Better(
            text="TBPTT with a step a segment learns less than with 16.",
            better="TBPTT(16)",
            than="TBPTT(1)",
        ),
        Alike(
            text="RTRL does not depend on the length of a segment.",
            one="RTRL(1)",
            other="RTRL(16)",
            within=0.1,
        ),
        Alike(
            text="RTRL in short segments learns as much as BPTT through the rollout.",
            one="RTRL(4)",
            other="BPTT",
            within=0.1,
        ),
    ),
    differs=(
        "The paper trains R2AC with eLSTM on DMLab and ProcGen; here it is PPO with linear RTU, "
        "without an encoder, on cards that are asked for 7 steps later."
    ),
)
