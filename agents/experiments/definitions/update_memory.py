"""Memory of learning at every step over the steps that credit reaches back."""

import zoo
from agents.experiments.claims import Ratio
from agents.experiments.experiment import Experiment, Lines, Scale
from agents.learning import RTRL, TBPTT

LENGTHS = (10, 50, 100, 300)

EXPERIMENT = Experiment(
    name="update_memory",
    question="How does the memory of learning grow with the steps that credit reaches back?",
    source="Irie et al. (2024), appendix B.3: memory over M",
    kind="cost",
    algorithm="streaming_td",
    base={
        "env": "trace_conditioning",
        "memory": zoo.spec("elstm", hidden=512),
        "encoder_size": 256,
        "num_envs": 32,
        "rollout_length": 1,
    },
    environments={"32 streams": {}},
    variants={
        "RTRL": {"gradient": RTRL()},
        **{f"TBPTT({length})": {"gradient": TBPTT(length)} for length in LENGTHS},
    },
    scales={"quick": Scale(32, 2), "small": Scale(32, 3), "full": Scale(32, 3)},
    metric="megabytes",
    falls=True,
    claims=(
        Ratio(
            text="TBPTT(300) needs at least twice the memory of TBPTT(50).",
            one="TBPTT(300)",
            other="TBPTT(50)",
            above=2.0,
        ),
        Ratio(
            text="RTRL needs more memory than TBPTT(10).",
            one="RTRL",
            other="TBPTT(10)",
            above=1.0,
        ),
        Ratio(
            text="RTRL needs less memory than TBPTT(300).",
            one="RTRL",
            other="TBPTT(300)",
            below=1.0,
        ),
    ),
    lines=Lines(
        "M, steps that TBPTT looks back",
        {
            "RTRL": dict.fromkeys(LENGTHS, "RTRL"),
            "TBPTT": {length: f"TBPTT({length})" for length in LENGTHS},
        },
    ),
    differs=(
        "XLA's own account of arguments, results and scratch space of one step of StreamingTD on a "
        "CPU, the same at every measurement. 512 units of an eLSTM and 32 streams as in the paper, "
        "but 256 features of a small layer in place of a network for pictures, whose activations "
        "are the larger part of the paper's gigabytes. R2AC backpropagates inside its unrolls, so "
        "that there RTRL's memory grows with M as TBPTT's does."
    ),
)
