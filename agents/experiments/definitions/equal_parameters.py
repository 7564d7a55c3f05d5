"""Prediction at every step with as many parameters, where one cell gets more computation."""

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Lines
from agents.experiments.trace_conditioning import BASE, RING, SCALES
from agents.learning import RTRL, TBPTT

# Units of a GRU, and of an RTU with about as many parameters, 3 m (m + d + 1) and 2 n (d + 1).
SIZES = {2: 3, 4: 8, 8: 19, 16: 54}

EXPERIMENT = Experiment(
    name="equal_parameters",
    question="With as many parameters, and 45 steps to look back for the GRU: which predicts "
    "better?",
    source="Elelimy et al. (2024), figure 2d",
    algorithm="streaming_td",
    base=BASE,
    environments={"E = 30": {"env_options": {"expected_isi": 30}}},
    variants={
        **{
            f"RTU, {n}": {"memory": zoo.spec("rtu", hidden=n, **RING), "gradient": RTRL()}
            for n in SIZES.values()
        },
        **{
            f"GRU, {m}": {"memory": zoo.spec("gru", hidden=m), "gradient": TBPTT(45)} for m in SIZES
        },
    },
    tune={"learning_rate": (1e-3, 3e-3, 1e-2)},
    scales=SCALES,
    measure="area",
    metric="return_error",
    falls=True,
    claims=(
        *(
            Better(
                text=f"RTU of {n} units has a smaller error than GRU of {m}.",
                better=f"RTU, {n}",
                than=f"GRU, {m}",
            )
            for m, n in SIZES.items()
        ),
        Better(text="RTU gains from 54 units in place of 3.", better="RTU, 54", than="RTU, 3"),
    ),
    lines=Lines(
        "parameters of the memory",
        {
            "RTU, RTRL": {3 * m * (m + 13): f"RTU, {n}" for m, n in SIZES.items()},
            "GRU, TBPTT(45)": {3 * m * (m + 13): f"GRU, {m}" for m in SIZES},
        },
    ),
    differs=(
        "200,000 steps in place of 2 million, 5 seeds, three rates tried on 2 others; TD(.9). The "
        "RTU begins with moduli above .5 and phases below .5 radians per step."
    ),
)
