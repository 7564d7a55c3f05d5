"""What each part of Fast and Forgetful Memory is worth."""

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Scale
from agents.learning import BPTT


def _memory(name: str, **options):
    return {"memory": zoo.spec(name, hidden=64, **options)}


EXPERIMENT = Experiment(
    name="ffm_ablation",
    question="Which part of FFM does learning need: decay, context, gates?",
    source="Morad et al. (2023), table 4 and figures 9 to 12",
    algorithm="ppo",
    base={"gradient": BPTT()},
    environments={
        name: {"env": name} for name in ("RepeatPreviousEasy", "RepeatFirstEasy", "CountRecallEasy")
    },
    variants={
        "ffm": _memory("ffm"),
        "no decay": _memory("ffm", decay=False),
        "no context": _memory("ffm", context=False),
        "no input gate": _memory("ffm", input_gate=False),
        "no output gate": _memory("ffm", output_gate=False),
        "gru": _memory("gru"),
        "lstm": _memory("lstm"),
        "elman": _memory("elman"),
        "no memory": _memory("mlp"),
    },
    scales={
        "quick": Scale(16_384, 2),
        "small": Scale(500_000, 3),
        "full": Scale(15_000_000, 10),
    },
    claims=(
        Better(text="FFM is better than GRU.", better="ffm", than="gru"),
        Better(text="GRU is better than LSTM.", better="gru", than="lstm"),
        Better(text="FFM needs its decay.", better="ffm", than="no decay"),
        Better(
            text="It needs the decay more than the context.", better="no context", than="no decay"
        ),
        Better(text="All of it is memory.", better="ffm", than="no memory"),
    ),
    differs=(
        "Three of the 14 tasks and 8 of the 14 models, half a million steps in place of 15 million,"
        " one learning rate for all, and 64 units in place of a state of 256 numbers."
    ),
)
