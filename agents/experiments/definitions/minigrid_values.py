"""Deep Q-learning with memories that actions write, in a room of MiniGrid."""

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Scale


def _with(memory: str):
    return {"env_options": {"external_memory": memory}}


EXPERIMENT = Experiment(
    name="minigrid_values",
    question="Which memory that actions write do deep Q-values learn to use?",
    source="Toro Icarte et al. (2020), figure 12: RedBlueDoors",
    algorithm="dqn",
    base={
        "memory": zoo.spec("mlp", hidden=128),
        "dueling": False,
        "epsilon": 0.1,
        "epsilon_end": 0.1,
        "discount": 0.9,
        "encoder_size": 128,
        "head_size": 128,
    },
    environments={"RedBlueDoors-8x8": {"env": "RedBlueDoors-8x8"}},
    variants={"none": {}, **{name: _with(name) for name in ("K3", "B3", "O3", "OA3")}},
    scales={
        "quick": Scale(8_192, 2),
        "small": Scale(500_000, 5),
        "full": Scale(5_000_000, 30),
    },
    claims=tuple(
        Better(text=f"{kept} is better than {other}.", better=kept, than=other)
        for kept in ("O3", "OA3")
        for other in ("K3", "B3", "none")
    ),
    differs=(
        "Half a million steps and a rate of 3e-4 in place of 1e-5; four updates of a thousand "
        "steps for every 512 of 16 environments side by side, in place of one of 32 for each; "
        "the target network follows with .5 % an update; three hidden layers in place of four."
    ),
)
