"""How a trace unit's modulus and phase are learned, over the learning rate."""

from typing import Any

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Lines, Scale
from agents.experiments.trace_conditioning import BASE
from agents.learning import RTRL

RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
FORMS: dict[str, dict[str, Any]] = {
    "r = exp(-exp ν), exp ϑ": {},
    "r = exp(-|ν|), exp ϑ": {"modulus": "exp"},
    "r = σ(ν), exp ϑ": {"modulus": "sigmoid"},
    "r direct, exp ϑ": {"modulus": "direct"},
    "r = exp(-exp ν), ϑ direct": {"phase": "direct"},
}


def _memory(form: dict[str, Any]):
    return zoo.spec("rtu", hidden=20, r_min=0.5, max_phase=0.5, **form)


EXPERIMENT = Experiment(
    name="parameterizations",
    question="Which ways to learn a trace unit's modulus and phase bear which learning rates?",
    source="Elelimy et al. (2024), figures 9 and 10",
    algorithm="streaming_td",
    base={**BASE, "gradient": RTRL()},
    environments={"E = 10": {"env_options": {"expected_isi": 10}}},
    variants={
        f"{label}, {rate:g}": {"memory": _memory(form), "learning_rate": rate}
        for label, form in FORMS.items()
        for rate in RATES
    },
    scales={
        "quick": Scale(10_000, 2),
        "small": Scale(100_000, 5),
        "full": Scale(2_000_000, 10),
    },
    measure="area",
    metric="return_error",
    falls=True,
    claims=(
        *(
            Better(
                text="A modulus learned as it is has a larger error than exp(-exp ν) at a rate of "
                f"{rate:g}.",
                better=f"r = exp(-exp ν), exp ϑ, {rate:g}",
                than=f"r direct, exp ϑ, {rate:g}",
            )
            for rate in (1e-3, 1e-2)
        ),
        Better(
            text="A phase learned as it is has a larger error than exp ϑ at a rate of 0.01.",
            better="r = exp(-exp ν), exp ϑ, 0.01",
            than="r = exp(-exp ν), ϑ direct, 0.01",
        ),
    ),
    lines=Lines(
        "learning rate, 1e-5",
        {label: {round(rate * 1e5): f"{label}, {rate:g}" for rate in RATES} for label in FORMS},
        log=True,
    ),
    differs=(
        "100,000 steps, E = 10, one size of 20 units, 5 seeds; TD(.9). A modulus learned as it is "
        "is clipped below 1, so that it cannot diverge as the paper's does. Cells begin with "
        "moduli above .5 and phases below .5 radians per step. Rates end at 0.01: at 0.03, also "
        "declared, one of five seeds of the usual form did not stay finite."
    ),
)
