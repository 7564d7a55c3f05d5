"""SAC and TD3 with FFM and with a GRU, on a pendulum whose speed is hidden."""

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Scale

MEMORIES = {
    "FFM": zoo.spec("ffm", hidden=64),
    "GRU": zoo.spec("gru", hidden=64),
    "no memory": zoo.spec("mlp", hidden=64),
}

EXPERIMENT = Experiment(
    name="pendulum_memory",
    question="Is FFM as good as a GRU for continuous actions learned from replay?",
    source="Morad et al. (2023), figures 5, 7 and 8",
    algorithm="sac",
    environments={"PositionOnlyPendulumEasy": {"env": "PositionOnlyPendulumEasy"}},
    variants={
        f"{algorithm.upper()}, {label}": {"algorithm": algorithm, "memory": memory}
        for algorithm in ("sac", "td3")
        for label, memory in MEMORIES.items()
    },
    scales={
        "quick": Scale(4_000, 2),
        "small": Scale(50_000, 3),
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
        "One small task in place of eight robots, 50,000 steps in place of 1.5 million, 3 seeds, "
        "this library's default settings of both algorithms."
    ),
)
