"""Whether sensitivities and targets should be made anew between the epochs of a rollout."""

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Scale
from agents.learning import RTRL

EXPERIMENT = Experiment(
    name="staleness",
    question="Does PPO with RTRL gain when sensitivities are recomputed before every epoch?",
    source="Elelimy et al. (2024), figure 17: stale against fresh gradients and targets",
    algorithm="ppo",
    base={
        "env": "RepeatPrevious",
        "env_options": {"k": 8},
        "memory": zoo.spec("rtu", hidden=64),
        "encoder_size": 0,
        "discount": 0.9,
    },
    environments={
        "4 epochs": {"epochs": 4},
        "8 epochs": {"epochs": 8},
    },
    variants={
        "stale": {"gradient": RTRL(1)},
        "fresh sensitivities": {"gradient": RTRL(1, refresh="epoch")},
        "fresh targets": {"gradient": RTRL(1), "targets": "fresh"},
        "both fresh": {"gradient": RTRL(1, refresh="epoch"), "targets": "fresh"},
        "as published": {"gradient": RTRL(1, refresh="published")},
    },
    scales={
        "quick": Scale(16_384, 2),
        "small": Scale(400_000, 5),
        "full": Scale(5_000_000, 10),
    },
    measure="area",
    claims=(
        Better(
            text="Stale sensitivities and targets learn at least as much as fresh sensitivities: "
            "the mean return over training is not lower by more than .05.",
            better="stale",
            than="fresh sensitivities",
            by=-0.05,
        ),
        Better(
            text="The same of fresh targets.",
            better="stale",
            than="fresh targets",
            by=-0.05,
        ),
        Better(
            text="The same where both are fresh.",
            better="stale",
            than="both fresh",
            by=-0.05,
        ),
        Better(
            text="Sensitivities recomputed as the published code does, shifted by a step, learn "
            "less than those recomputed as the paper says.",
            better="fresh sensitivities",
            than="as published",
        ),
    ),
    differs=(
        "The paper's tasks are from Mujoco; here a card is asked for seven steps after it was "
        "shown. Steps are learned from one by one, as there, but of 64 environments by 128 steps "
        "in 4 minibatches, in place of one by 2,048 in 32."
    ),
)
