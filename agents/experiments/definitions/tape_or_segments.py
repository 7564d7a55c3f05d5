"""Replay of whole episodes end to end, against segments of several lengths."""

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Scale


def _segments(length: int):
    return {"sampling": "zero", "segment": length}


EXPERIMENT = Experiment(
    name="tape_or_segments",
    question="What does DQN lose where episodes are cut into segments that start from zero?",
    source="Morad et al. (2024), figures 4 and 6: tape-based against segment-based batching",
    algorithm="dqn",
    base={
        "memory": zoo.spec("lru", hidden=64),
        "num_envs": 4,
        "rollout_length": 100,
        "learning_rate": 1e-3,
        "discount": 0.9,
        "epsilon_steps": 50_000,
        "target_kept": 0.98,
    },
    environments={
        "RepeatPrevious(k=10)": {"env": "RepeatPrevious", "env_options": {"k": 10}},
        "RepeatFirstEasy": {"env": "RepeatFirstEasy", "discount": 0.99},
    },
    variants={
        "tape": {"sampling": "tape", "tapes": 4},
        "segments of 50": _segments(50),
        "segments of 20": _segments(20),
        "segments of 10": _segments(10),
        "stored states, 10": {"sampling": "stored", "segment": 10},
    },
    scales={
        "quick": Scale(4_000, 2),
        "small": Scale(200_000, 5),
        "full": Scale(5_000_000, 10),
    },
    claims=(
        Better(
            text="The tape is better than segments of 10.", better="tape", than="segments of 10"
        ),
        Better(
            text="The tape is better than segments of 50.", better="tape", than="segments of 50"
        ),
        Better(text="Longer segments are better.", better="segments of 50", than="segments of 10"),
        Better(
            text="Stored states do not make up for the cut: the tape is better than them too.",
            better="tape",
            than="stored states, 10",
        ),
    ),
    differs=(
        "Two tasks and one memory, and settings found for "
        "RepeatPreviousEasy in place of the paper's slower ones."
    ),
)
