"""Prediction at every step with a fixed number of operations: trace units against windows."""

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Lines
from agents.experiments.trace_conditioning import BASE, RING, SCALES
from agents.learning import RTRL, TBPTT

GRU = {5: 8, 10: 5, 20: 3, 45: 1}
LRU = {5: 11, 20: 4}


def _window(name: str, hidden: int, length: int, **options):
    return {"memory": zoo.spec(name, hidden=hidden, **options), "gradient": TBPTT(length)}


EXPERIMENT = Experiment(
    name="equal_computation",
    question="With 15,000 operations for each update, is it better to carry sensitivities or to "
    "look back over T steps?",
    source="Elelimy et al. (2024), figure 2a",
    algorithm="streaming_td",
    base=BASE,
    environments={"E = 30": {"env_options": {"expected_isi": 30}}},
    variants={
        "RTU": {"memory": zoo.spec("rtu", hidden=44, **RING), "gradient": RTRL()},
        **{f"GRU, T = {t}": _window("gru", hidden, t) for t, hidden in GRU.items()},
        **{f"LRU, T = {t}": _window("lru", hidden, t, **RING) for t, hidden in LRU.items()},
    },
    tune={"learning_rate": (1e-3, 3e-3)},
    scales=SCALES,
    measure="area",
    metric="return_error",
    falls=True,
    claims=tuple(
        Better(
            text=f"RTU has a smaller error than {kind.upper()} with T = {t}.",
            better="RTU",
            than=f"{kind.upper()}, T = {t}",
        )
        for kind, lengths in (("gru", GRU), ("lru", LRU))
        for t in lengths
    ),
    lines=Lines(
        "T, steps that TBPTT looks back",
        {
            "RTU, RTRL": dict.fromkeys(GRU, "RTU"),
            "GRU, TBPTT": {t: f"GRU, T = {t}" for t in GRU},
            "LRU, TBPTT": {t: f"LRU, T = {t}" for t in LRU},
        },
    ),
    differs=(
        "200,000 steps in place of 2 million, 5 seeds, two rates tried on 2 others; TD(.9), where "
        "the paper does not name the loss. The budget counts 28 n d operations for an RTU of n "
        "complex units with d = 12 inputs (n = 44), 18 T m (m + d) for a GRU of m units (8, 5, 3 "
        "and 1 for T = 5, 10, 20 and 45; two units would take 22,700 operations there, one takes "
        "10,500), and 12 T m (m + d) for an LRU (11 and 4 for T = 5 and 20). RTU and LRU begin "
        "with moduli above .5 and phases below .5 radians per step."
    ),
)
