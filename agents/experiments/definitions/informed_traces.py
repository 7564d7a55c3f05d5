"""FFM with traces that begin as long as the task is, and with a wide spread of them."""

from typing import Any

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Scale
from agents.learning import BPTT


def _ffm(low: float, high: float):
    spans: dict[str, Any] = {"durations": (low, high), "periods": (low, high)}
    return {"memory": zoo.spec("ffm", hidden=64, **spans)}


EXPERIMENT = Experiment(
    name="informed_traces",
    question="Does FFM learn more where its traces begin with the task's own lengths?",
    source="Morad et al. (2023), figure 6, right",
    algorithm="ppo",
    base={"env": "RepeatPreviousMedium", "gradient": BPTT(), "discount": 0.9},
    environments={"RepeatPreviousMedium": {}},
    variants={
        "32 to 104 steps": _ffm(32.0, 104.0),
        "1 to 1024 steps": _ffm(1.0, 1024.0),
        "GRU": {"memory": zoo.spec("gru", hidden=64)},
    },
    scales={
        "quick": Scale(16_384, 2),
        "small": Scale(2_000_000, 5),
        "full": Scale(15_000_000, 10),
    },
    measure="area",
    claims=(
        Better(
            text="Beginning with 32 to 104 steps learns more than with 1 to 1024.",
            better="32 to 104 steps",
            than="1 to 1024 steps",
        ),
    ),
    differs=(
        "Two million steps in place of 15 million, with one rate; durations are of traces down to "
        "a hundredth here, where the paper's figure has a tenth."
    ),
)
