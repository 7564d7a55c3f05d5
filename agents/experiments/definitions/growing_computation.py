"""Prediction at every step with more and more operations: more units, or longer windows."""

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Lines
from agents.experiments.trace_conditioning import BASE, RING, SCALES
from agents.learning import RTRL, TBPTT

# By thousands of operations for each update: units of an RTU, T of a GRU of 5 units, units of a GRU
# that looks back 45 steps.
BUDGETS = {11: (31, 7, 1), 23: (67, 15, 2), 36: (108, 24, 3), 52: (154, 34, 4)}


def _gru(hidden: int, length: int):
    return {"memory": zoo.spec("gru", hidden=hidden), "gradient": TBPTT(length)}


EXPERIMENT = Experiment(
    name="growing_computation",
    question="What do more operations for each update buy: units, or steps to look back?",
    source="Elelimy et al. (2024), figures 2b and 2c",
    algorithm="streaming_td",
    base=BASE,
    environments={"E = 30": {"env_options": {"expected_isi": 30}}},
    variants={
        **{
            f"RTU, {budget}": {
                "memory": zoo.spec("rtu", hidden=hidden, **RING),
                "gradient": RTRL(),
            }
            for budget, (hidden, _, _) in BUDGETS.items()
        },
        **{f"GRU by T, {budget}": _gru(5, t) for budget, (_, t, _) in BUDGETS.items()},
        **{f"GRU by size, {budget}": _gru(m, 45) for budget, (_, _, m) in BUDGETS.items()},
    },
    tune={"learning_rate": (1e-3, 3e-3, 1e-2)},
    scales=SCALES,
    measure="area",
    metric="return_error",
    falls=True,
    claims=(
        *(
            Better(
                text=f"With {budget},000 operations RTU has a smaller error than a GRU with "
                f"{'longer windows' if way == 'GRU by T' else 'more units'}.",
                better=f"RTU, {budget}",
                than=f"{way}, {budget}",
            )
            for way in ("GRU by T", "GRU by size")
            for budget in BUDGETS
        ),
        Better(
            text="A GRU of 5 units gains from looking back 34 steps in place of 7.",
            better="GRU by T, 52",
            than="GRU by T, 11",
        ),
        Better(text="RTU gains from 154 units in place of 31.", better="RTU, 52", than="RTU, 11"),
    ),
    lines=Lines(
        "thousands of operations for each update",
        {
            "RTU, RTRL, by size": {budget: f"RTU, {budget}" for budget in BUDGETS},
            "GRU, 5 units, by T": {budget: f"GRU by T, {budget}" for budget in BUDGETS},
            "GRU, T = 45, by size": {budget: f"GRU by size, {budget}" for budget in BUDGETS},
        },
    ),
    differs=(
        "200,000 steps in place of 2 million, 5 seeds, three rates tried on 2 others; TD(.9). "
        "Operations are counted as in [equal computation](equal_computation.html): 28 n d for an "
        "RTU, 18 T m (m + d) for a GRU, with d = 12 inputs. The RTU begins with moduli above .5 "
        "and phases below .5 radians per step."
    ),
)
