"""Which past observations a value depends on, after training on tapes or on segments."""

import jax

import zoo
from agents.acting import Policy
from agents.agent import AbstractAgent
from agents.analysis import cumulative_sensitivity, episode_sensitivities
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Scale

NEEDED = 10


def beyond_need(agent: AbstractAgent, policy: Policy) -> float:
    """Return the share of the value's sensitivity to observations older than are needed."""
    found = episode_sensitivities(agent.actor, policy, episodes=32, key=jax.random.key(0))
    return float(1 - cumulative_sensitivity(found)[NEEDED])


MEMORIES = {
    "LRU": zoo.spec("lru", hidden=64),
    "S5": zoo.spec("s5", hidden=64),
    "FFM": zoo.spec("ffm", hidden=64),
    "linear attention": zoo.spec("linear_attention", hidden=64),
}

EXPERIMENT = Experiment(
    name="value_memory",
    question="How much do values depend on observations that are older than the task needs?",
    source="Morad et al. (2024), figure 3",
    algorithm="dqn",
    base={
        "num_envs": 4,
        "rollout_length": 100,
        "learning_rate": 1e-3,
        "discount": 0.9,
        "epsilon_steps": 50_000,
        "target_kept": 0.98,
    },
    environments={"RepeatPrevious(k=10)": {"env": "RepeatPrevious", "env_options": {"k": NEEDED}}},
    variants={
        f"{label}, {kind}": {"memory": memory, **sampling}
        for label, memory in MEMORIES.items()
        for kind, sampling in {
            "tape": {"sampling": "tape", "tapes": 4},
            "segments of 10": {"sampling": "zero", "segment": 10},
        }.items()
    },
    scales={
        "quick": Scale(4_000, 2),
        "small": Scale(200_000, 3),
        "full": Scale(4_000_000, 10),
    },
    metric=f"share of the sensitivity beyond {NEEDED} observations",
    probe=beyond_need,
    falls=True,
    claims=tuple(
        Better(
            text=f"{label}: the value depends less on older observations after the tape than after "
            "segments.",
            better=f"{label}, tape",
            than=f"{label}, segments of 10",
        )
        for label in MEMORIES
    ),
    differs=(
        "The value at the end of 32 greedy episodes of 3 seeds, by the Euclidean norm of its "
        "derivative with respect to each observation; 64 units, 200,000 steps, and settings found "
        "for RepeatPreviousEasy."
    ),
)
