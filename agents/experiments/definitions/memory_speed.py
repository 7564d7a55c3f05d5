"""Time of PPO with memories that scan in parallel, and with those that go step by step."""

import zoo
from agents.experiments.claims import Ratio
from agents.experiments.experiment import Experiment, Scale
from agents.learning import BPTT

MEMORIES = ("ffm", "lru", "s5", "linear_attention", "gru", "lstm", "elman", "mlp")

EXPERIMENT = Experiment(
    name="memory_speed",
    question="What does a step of PPO cost with FFM, with its relatives and with RNNs?",
    source="Morad et al. (2023), table 1 and figure 3",
    kind="cost",
    algorithm="ppo",
    base={"env": "RepeatPreviousEasy", "gradient": BPTT(), "num_envs": 16, "epochs": 2},
    environments={
        f"rollouts of {length}": {"rollout_length": length, "minibatches": 4}
        for length in (64, 1024)
    },
    variants={name: {"memory": zoo.spec(name, hidden=64)} for name in MEMORIES},
    scales={
        "quick": Scale(16_384, 2),
        "small": Scale(16_384, 5),
        "full": Scale(163_840, 20),
    },
    measure="best",
    metric="microseconds per step",
    falls=True,
    claims=(
        *(
            Ratio(
                text=f"A step with {name.upper()} takes longer than with FFM.",
                one=name,
                other="ffm",
                above=1.0,
                environments=("rollouts of 1024",),
            )
            for name in ("gru", "lstm", "elman")
        ),
        Ratio(
            text="A step with GRU takes over 10 times as long as with FFM.",
            one="gru",
            other="ffm",
            above=10.0,
            environments=("rollouts of 1024",),
        ),
    ),
    differs=(
        "Two cores of a CPU with nothing else to do, in place of a GPU; RNNs are compiled loops "
        "here and Python's there. Every memory by the scan that it takes by itself on this "
        "machine. 64 units, 16 environments, 2 epochs."
    ),
)
