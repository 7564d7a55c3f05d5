"""Ways to carry credit at every step, in constant memory."""

import zoo
from agents.experiments.claims import Alike, Better
from agents.experiments.credit import RULES, gru
from agents.experiments.experiment import Experiment, Scale
from agents.learning import RTRL, TBPTT

_RTU = zoo.spec("rtu", hidden=16, r_max=0.85)

EXPERIMENT = Experiment(
    name="online_credit",
    question="Which ways to carry credit learn to remember, when every step is learned from once?",
    source="Ours, of claims that immediate derivatives or approximations of RTRL suffice",
    algorithm="streaming_ac",
    base={
        "env": "MemoryChain-bsuite",
        "head_size": 16,
        "adaptive": True,
        "rollout_length": 10_000,
    },
    environments={
        f"{length} steps": {"env_options": {"memory_length": length}} for length in (2, 8, 32)
    },
    variants={
        "rtu, exact": {"memory": _RTU, "gradient": RTRL()},
        "rtu, TBPTT(1)": {"memory": _RTU, "gradient": TBPTT(1)},
        "rtu, TBPTT(8)": {"memory": _RTU, "gradient": TBPTT(8)},
        **{f"gru, {rule}": gru(RTRL(), rule) for rule in RULES},
        "gru, TBPTT(1)": gru(TBPTT(1)),
        "no memory": {"memory": zoo.spec("mlp", hidden=16), "gradient": TBPTT(1)},
    },
    scales={
        "quick": Scale(10_000, 2),
        "small": Scale(200_000, 5),
        "full": Scale(2_000_000, 20),
    },
    claims=(
        Better(
            text="A diagonal cell learns 32 steps with exact credit, and not with one step of it.",
            better="rtu, exact",
            than="rtu, TBPTT(1)",
            by=0.5,
            environments=("32 steps",),
        ),
        Better(
            text="Eight steps of credit do less than all of it, at 32 steps.",
            better="rtu, exact",
            than="rtu, TBPTT(8)",
            environments=("32 steps",),
        ),
        Better(
            text="A dense cell learns more with exact credit than with SnAp-1, at 8 steps.",
            better="gru, exact",
            than="gru, SnAp-1",
            environments=("8 steps",),
        ),
        Alike(
            text="Immediate derivatives are as good as exact credit, in a dense cell at 8 steps.",
            one="gru, immediate",
            other="gru, exact",
            within=0.1,
            environments=("8 steps",),
        ),
        Alike(
            text="The same at 2 steps.",
            one="gru, immediate",
            other="gru, exact",
            within=0.1,
            environments=("2 steps",),
        ),
    ),
    differs="One task of three lengths, one way of acting and learning.",
)
