"""Ways to carry credit at every step, where what follows is predicted."""

import zoo
from agents.experiments.claims import Alike, Better
from agents.experiments.credit import RULES, gru
from agents.experiments.experiment import Experiment
from agents.experiments.trace_conditioning import BASE, RING, SCALES
from agents.learning import RTRL, TBPTT

_RTU = zoo.spec("rtu", hidden=16, **RING)

EXPERIMENT = Experiment(
    name="online_prediction",
    question="Which ways to carry credit predict well, when every step is learned from once?",
    source="Ours, of claims that immediate derivatives or approximations of RTRL suffice",
    algorithm="streaming_td",
    base=BASE,
    environments={f"E = {isi}": {"env_options": {"expected_isi": isi}} for isi in (10, 30)},
    variants={
        "rtu, exact": {"memory": _RTU, "gradient": RTRL()},
        "rtu, TBPTT(1)": {"memory": _RTU, "gradient": TBPTT(1)},
        "rtu, TBPTT(8)": {"memory": _RTU, "gradient": TBPTT(8)},
        **{f"gru, {rule}": gru(RTRL(), rule) for rule in RULES},
        "gru, TBPTT(1)": gru(TBPTT(1)),
        "gru, TBPTT(8)": gru(TBPTT(8)),
        "no memory": {"memory": zoo.spec("mlp", hidden=16), "gradient": TBPTT(1)},
    },
    scales=SCALES,
    metric="return_error",
    falls=True,
    claims=(
        Better(
            text="A diagonal cell predicts better with exact credit than with one step of it.",
            better="rtu, exact",
            than="rtu, TBPTT(1)",
        ),
        Better(
            text="A dense cell predicts better with exact credit than with one step of it.",
            better="gru, exact",
            than="gru, TBPTT(1)",
        ),
        Better(
            text="It predicts better with exact credit than with SnAp-1.",
            better="gru, exact",
            than="gru, SnAp-1",
        ),
        Alike(
            text="Immediate derivatives come within .002 of exact credit, in a dense cell.",
            one="gru, immediate",
            other="gru, exact",
            within=0.002,
        ),
        Better(
            text="With exact credit the diagonal cell predicts better than the dense one.",
            better="rtu, exact",
            than="gru, exact",
        ),
    ),
    differs="One task of two intervals, one rate for all, TD(.9).",
)
