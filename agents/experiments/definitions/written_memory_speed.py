"""Time of PPO with memories that actions write, and with an LSTM."""

import zoo
from agents.experiments.claims import Ratio
from agents.experiments.experiment import Experiment, Scale
from agents.learning import BPTT


def _with(memory: str):
    return {"env_options": {"external_memory": memory}, "memory": zoo.spec("mlp", hidden=128)}


EXPERIMENT = Experiment(
    name="written_memory_speed",
    question="Is a memory that actions write cheaper than an LSTM?",
    source="Toro Icarte et al. (2020), table 1",
    kind="cost",
    algorithm="ppo",
    base={
        "gradient": BPTT(),
        "num_envs": 16,
        "encoder_size": 128,
        "head_size": 128,
    },
    environments={name: {"env": name} for name in ("MemoryS7", "RedBlueDoors-8x8")},
    variants={
        "none": {"memory": zoo.spec("mlp", hidden=128)},
        **{name: _with(name) for name in ("K3", "B3", "O3", "OA3")},
        "LSTM": {"memory": zoo.spec("lstm", hidden=128)},
    },
    scales={
        "quick": Scale(2_048, 2),
        "small": Scale(8_192, 5),
        "full": Scale(200_000, 10),
    },
    measure="best",
    metric="microseconds per step",
    falls=True,
    claims=tuple(
        Ratio(
            text=f"A step with an LSTM takes longer than with {name}.",
            one="LSTM",
            other=name,
            above=1.0,
        )
        for name in ("O3", "OA3")
    ),
    differs=(
        "Two of the tasks, two cores of a CPU, of which other programs took their share; PPO of "
        "this library with 128 units in every layer, 16 environments and 128 steps, the LSTM by "
        "BPTT through all of them."
    ),
)
