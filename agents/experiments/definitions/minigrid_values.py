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
        "sampling": "zero",
        "segment": 2,
        "batch_steps": 256,
        "updates": 16,
        "target_kept": 0.95,
        "epsilon": 1.0,
        "epsilon_end": 0.1,
        "epsilon_steps": 100_000,
        "discount": 0.95,
        "encoder_size": 128,
        "head_size": 128,
    },
    environments={"RedBlueDoors-8x8": {"env": "RedBlueDoors-8x8"}},
    variants={
        "none": {},
        **{name: _with(name) for name in ("K3", "B3", "O3", "OA3")},
        "all is seen": {"env_options": {"observability": "full"}},
    },
    scales={
        "quick": Scale(8_192, 2),
        "small": Scale(400_000, 3),
        "full": Scale(5_000_000, 30),
    },
    claims=tuple(
        Better(text=f"{kept} is better than {other}.", better=kept, than=other)
        for kept in ("O3", "OA3")
        for other in ("K3", "B3", "none")
    ),
    differs=(
        "Settings with which the same learner solves the room where all of it is seen, the last "
        "variant: 400,000 steps in place of five million, a rate of 3e-4 in place of 1e-5, 16 "
        "updates from 256 steps for every 512 of 16 environments side by side, in place of one "
        "from 32 for each; target networks follow with 5 % an update; ε falls from 1 to .1 over "
        "100,000 steps, and is .1 at once in the paper; a discount of .95 in place of .9; three "
        "hidden layers in place of four."
    ),
)
