"""SAC and TD3 with FFM and with a GRU, on a pendulum whose speed is hidden."""

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Scale

MEMORIES = {
    "FFM": zoo.spec("ffm", hidden=32),
    "GRU": zoo.spec("gru", hidden=32),
    "no memory": zoo.spec("mlp", hidden=32),
}
OWN = {"sac": {"temperature": 0.02}, "td3": {}}

EXPERIMENT = Experiment(
    name="pendulum_memory",
    question="Is FFM as good as a GRU for continuous actions learned from replay?",
    source="Morad et al. (2023), figures 5, 7 and 8",
    algorithm="sac",
    base={
        "num_envs": 8,
        "rollout_length": 25,
        "updates": 20,
        "warm_up": 4000,
        "sampling": "zero",
        "segment": 20,
        "batch_steps": 400,
        "learning_rate": 2e-3,
        "discount": 0.95,
        "target_kept": 0.97,
        "reward_scale": 100.0,
        "encoder_size": 32,
        "head_size": 32,
    },
    environments={"PositionOnlyPendulumEasy": {"env": "PositionOnlyPendulumEasy"}},
    variants={
        f"{algorithm.upper()}, {label}": {"algorithm": algorithm, "memory": memory, **own}
        for algorithm, own in OWN.items()
        for label, memory in MEMORIES.items()
    },
    scales={
        "quick": Scale(4_000, 2),
        "small": Scale(40_000, 5),
        "full": Scale(1_500_000, 5),
    },
    claims=tuple(
        claim
        for algorithm in ("SAC", "TD3")
        for claim in (
            Better(
                text=f"{algorithm}: FFM is better than GRU.",
                better=f"{algorithm}, FFM",
                than=f"{algorithm}, GRU",
            ),
            Better(
                text=f"{algorithm}: FFM is better than no memory.",
                better=f"{algorithm}, FFM",
                than=f"{algorithm}, no memory",
            ),
        )
    ),
    differs=(
        "One small task in place of eight robots, 40,000 steps in place of 1.5 million, rewards "
        "times 100, and settings that were tried with a GRU of 16 units, as on the agents' pages."
    ),
)
