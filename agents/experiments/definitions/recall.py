"""Q-learning of a sequence of actions with memories that could hold it."""

from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Scale


def _with(memory: str):
    return {"env_options": {"external_memory": memory}}


EXPERIMENT = Experiment(
    name="recall",
    question="Does Q-learning stay with the best policy, where its memory can express it?",
    source="Toro Icarte et al. (2020), figure 3",
    algorithm="tabular",
    base={"rule": "q_learning", "epsilon": 0.01, "initial_value": 1.0},
    environments={"recall": {"env": "recall"}},
    variants={name: _with(name) for name in ("OA1", "B2", "O2", "K2")},
    scales={
        "quick": Scale(2_000, 2),
        "small": Scale(500_000, 20),
        "full": Scale(5_000_000, 30),
    },
    measure="area",
    claims=(
        Better(
            text="The policy is the best one less often with B2 than with OA1.",
            better="OA1",
            than="B2",
        ),
    ),
    differs=(
        "The return of the ε-greedy policy, averaged over all of training, in place of that of the "
        "greedy one every 10,000 steps: of the best policy it is about .98. ε is .01, α .1, γ .95 "
        "and values begin with 1."
    ),
)
