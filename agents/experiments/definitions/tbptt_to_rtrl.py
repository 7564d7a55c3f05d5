"""Prediction by one cell: how far TBPTT must look back to do what RTRL does."""

import zoo
from agents.experiments.claims import Alike, Better
from agents.experiments.experiment import Experiment, Lines
from agents.experiments.trace_conditioning import BASE, RING, SCALES
from agents.learning import RTRL, TBPTT

LENGTHS = (1, 5, 10, 20)
CELLS = {
    "RTU": zoo.spec("rtu", hidden=20, **RING),
    "nonlinear RTU": zoo.spec("rtu", hidden=20, nonlinear=True, **RING),
}

EXPERIMENT = Experiment(
    name="tbptt_to_rtrl",
    question="How far must TBPTT look back at every step to predict as well as RTRL?",
    source="Elelimy et al. (2024), figure 11",
    algorithm="streaming_td",
    base=BASE,
    environments={"E = 10": {"env_options": {"expected_isi": 10}}},
    variants={
        **{f"{label}, RTRL": {"memory": cell, "gradient": RTRL()} for label, cell in CELLS.items()},
        **{
            f"{label}, TBPTT({length})": {"memory": cell, "gradient": TBPTT(length)}
            for label, cell in CELLS.items()
            for length in LENGTHS
        },
    },
    tune={"learning_rate": (1e-3, 3e-3)},
    scales=SCALES,
    measure="area",
    metric="return_error",
    falls=True,
    claims=tuple(
        claim
        for label in CELLS
        for claim in (
            Better(
                text=f"{label}: TBPTT(10) has a smaller error than TBPTT(1).",
                better=f"{label}, TBPTT(10)",
                than=f"{label}, TBPTT(1)",
            ),
            Better(
                text=f"{label}: RTRL has a smaller error than TBPTT(5), which is shorter than the "
                "interval of 7 to 13 steps.",
                better=f"{label}, RTRL",
                than=f"{label}, TBPTT(5)",
            ),
            Alike(
                text=f"{label}: TBPTT(20), which covers the interval, comes within .003 of RTRL.",
                one=f"{label}, TBPTT(20)",
                other=f"{label}, RTRL",
                within=0.003,
            ),
        )
    ),
    lines=Lines(
        "T, steps that TBPTT looks back",
        {
            f"{label}, {kind}": {
                t: f"{label}, " + ("RTRL" if kind == "RTRL" else f"TBPTT({t})") for t in LENGTHS
            }
            for label in CELLS
            for kind in ("RTRL", "TBPTT")
        },
    ),
    differs=(
        "200,000 steps in place of 2 million, E = 10, 20 units, 5 seeds, two rates tried on 2 "
        "others; TD(.9). Cells begin with moduli above .5 and phases below .5 radians per step."
    ),
)
