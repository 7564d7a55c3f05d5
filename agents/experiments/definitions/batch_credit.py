"""Ways to carry credit from segment to segment of a rollout, in batches."""

import zoo
from agents.experiments.claims import Alike, Better
from agents.experiments.credit import RULES, gru
from agents.experiments.experiment import Experiment, Scale
from agents.learning import BPTT, RTRL, TBPTT

_RTU = zoo.spec("rtu", hidden=16)

EXPERIMENT = Experiment(
    name="batch_credit",
    question="Which ways to carry credit over the ends of short segments learn to remember, in "
    "batches?",
    source="Ours, of claims that immediate derivatives or approximations of RTRL suffice",
    algorithm="ppo",
    base={"encoder_size": 0, "discount": 0.9},
    environments={
        "RepeatPrevious(k=8)": {"env": "RepeatPrevious", "env_options": {"k": 8}},
        "t_maze(length=20)": {"env": "t_maze", "env_options": {"length": 20}, "discount": 0.98},
    },
    variants={
        "rtu, RTRL(4)": {"memory": _RTU, "gradient": RTRL(4)},
        "rtu, TBPTT(4)": {"memory": _RTU, "gradient": TBPTT(4)},
        "rtu, BPTT": {"memory": _RTU, "gradient": BPTT()},
        **{f"gru, RTRL(4) {rule}": gru(RTRL(4), rule) for rule in RULES},
        "gru, TBPTT(4)": gru(TBPTT(4)),
        "gru, BPTT": gru(BPTT()),
        "no memory": {"memory": zoo.spec("mlp", hidden=16), "gradient": BPTT()},
    },
    scales={
        "quick": Scale(16_384, 2),
        "small": Scale(400_000, 5),
        "full": Scale(5_000_000, 10),
    },
    measure="area",
    claims=(
        Better(
            text="A diagonal cell learns more with exact credit than with none over a segment's "
            "end.",
            better="rtu, RTRL(4)",
            than="rtu, TBPTT(4)",
        ),
        Better(
            text="So does a dense cell.",
            better="gru, RTRL(4) exact",
            than="gru, TBPTT(4)",
        ),
        Better(
            text="The dense cell learns more with exact credit than with SnAp-1.",
            better="gru, RTRL(4) exact",
            than="gru, RTRL(4) SnAp-1",
        ),
        Alike(
            text="Immediate derivatives are as good as exact credit in the dense cell.",
            one="gru, RTRL(4) immediate",
            other="gru, RTRL(4) exact",
            within=0.1,
        ),
        Alike(
            text="Exact credit in segments of 4 steps is as good as BPTT.",
            one="gru, RTRL(4) exact",
            other="gru, BPTT",
            within=0.1,
        ),
    ),
    differs="Two tasks, one rate for all, 16 units.",
)
