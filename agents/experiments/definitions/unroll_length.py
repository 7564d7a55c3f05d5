"""RTRL against TBPTT over the length of an unroll, by actor-critics with LSTMs."""

from typing import Any

import rtrl
import zoo
from agents.experiments.claims import Alike, Better
from agents.experiments.experiment import Experiment, Lines, Scale
from agents.learning import BPTT, RTRL

LENGTHS = (5, 10, 50)
WAYS: dict[str, dict[str, Any]] = {
    "LSTM, TBPTT": {"memory": zoo.spec("lstm", hidden=64), "gradient": BPTT()},
    "feLSTM, TBPTT": {"memory": zoo.spec("felstm", hidden=64), "gradient": BPTT()},
    "eLSTM, TBPTT": {"memory": zoo.spec("elstm", hidden=64), "gradient": BPTT()},
    "feLSTM, SnAp-1": {
        "memory": zoo.spec("felstm", hidden=64, sensitivity=rtrl.SnAp1()),
        "gradient": RTRL(None),
    },
    "eLSTM, RTRL": {"memory": zoo.spec("elstm", hidden=64), "gradient": RTRL(None)},
}

EXPERIMENT = Experiment(
    name="unroll_length",
    question="What does RTRL gain over TBPTT, by the steps M between two updates?",
    source="Irie et al. (2024), table 1",
    algorithm="r2ac",
    base={"learning_rate": 1e-2, "entropy_coefficient": 1e-4, "discount": 0.9},
    environments={"RepeatFirstEasy": {"env": "RepeatFirstEasy"}},
    variants={
        f"{label}, M = {length}": {**way, "unroll_length": length}
        for label, way in WAYS.items()
        for length in LENGTHS
    },
    scales={
        "quick": Scale(16_000, 2),
        "small": Scale(2_000_000, 3),
        "full": Scale(30_000_000, 5),
    },
    claims=(
        *(
            Better(
                text=f"With M = 10, eLSTM learns more by RTRL than {label}.",
                better="eLSTM, RTRL, M = 10",
                than=f"{label}, M = 10",
            )
            for label in WAYS
            if label != "eLSTM, RTRL"
        ),
        Better(
            text="With M = 5, eLSTM learns more by RTRL than by TBPTT.",
            better="eLSTM, RTRL, M = 5",
            than="eLSTM, TBPTT, M = 5",
        ),
        Alike(
            text="With M = 50, as long as an episode, RTRL and TBPTT of eLSTM are within .05.",
            one="eLSTM, RTRL, M = 50",
            other="eLSTM, TBPTT, M = 50",
            within=0.05,
        ),
    ),
    lines=Lines(
        "M, steps of an unroll",
        {label: {m: f"{label}, M = {m}" for m in LENGTHS} for label in WAYS},
    ),
    differs=(
        "Cards in place of DMLab and ProcGen: the suit shown first is asked for at each of 51 "
        "steps, each of which pays 1/51, so that the rate is higher and the entropy's weight lower "
        "than the paper's, and γ is .9. There are no episodes of a thousand steps. 64 units "
        "without an encoder, so that RTRL is exact for all that learns; two million steps, 3 "
        "seeds, synchronous actors."
    ),
)
