"""PPO with memories that actions write, in a room of MiniGrid with two doors."""

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Scale
from agents.learning import BPTT


def _with(memory: str):
    return {"env_options": {"external_memory": memory}, "memory": zoo.spec("mlp", hidden=128)}


EXPERIMENT = Experiment(
    name="minigrid_memory",
    question="Does PPO solve RedBlueDoors with observations that it chooses to keep?",
    source="Toro Icarte et al. (2020), figure 6: RedBlueDoors",
    algorithm="ppo",
    base={
        "gradient": BPTT(),
        "num_envs": 64,
        "encoder_size": 128,
        "head_size": 128,
        "learning_rate": 1e-3,
        "entropy_coefficient": 0.03,
    },
    environments={"RedBlueDoors-8x8": {"env": "RedBlueDoors-8x8"}},
    variants={
        "none": {"memory": zoo.spec("mlp", hidden=128)},
        **{name: _with(name) for name in ("K3", "B3", "O3", "OA3")},
        "LSTM": {"memory": zoo.spec("lstm", hidden=128)},
    },
    scales={
        "quick": Scale(16_384, 2),
        "small": Scale(3_000_000, 3),
        "full": Scale(20_000_000, 30),
    },
    claims=tuple(
        Better(text=f"{kept} is better than {other}.", better=kept, than=other)
        for kept in ("O3", "OA3")
        for other in ("LSTM", "K3", "B3", "none")
    ),
    differs=(
        "Three million steps in place of twenty, and a rate of 1e-3 in place of 1e-5, with which "
        "nothing moves in as many; 64 environments side by side and an entropy weight of .03, "
        "without which policies are certain before they see a reward; two hidden layers and the "
        "memory's in place of five; the LSTM by BPTT through 128 steps with the same settings."
    ),
)
