"""Tabular actor-critics with memories that actions write, in a grid with a hidden force."""

from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Scale


def _with(memory: str, n: int):
    return {"env_options": {"external_memory": memory}, "unroll_length": n, "updates": 1000 // n}


EXPERIMENT = Experiment(
    name="gravity_actor_critic",
    question="What do returns of more steps and memories of more observations do for an "
    "actor-critic?",
    source="Toro Icarte et al. (2020), figures 2 (actor-critic) and 4",
    algorithm="tabular_actor_critic",
    base={"policy_rate": 1.0},
    environments={"gravity": {"env": "gravity"}},
    variants={
        **{f"AC(5), {m}": _with(m, 5) for m in ("O1", "OA1", "O2", "OA2")},
        **{f"AC(20), {m}": _with(m, 20) for m in ("B1", "O1", "OA1")},
    },
    tune={"value_rate": (0.01, 0.1)},
    scales={
        "quick": Scale(2_000, 2),
        "small": Scale(500_000, 10, tuning_seeds=3),
        "full": Scale(5_000_000, 30, tuning_seeds=10),
    },
    metric="length",
    falls=True,
    claims=(
        *(
            Better(
                text=f"With {memory}, 20 steps are better than 5.",
                better=f"AC(20), {memory}",
                than=f"AC(5), {memory}",
            )
            for memory in ("O1", "OA1")
        ),
        *(
            Better(
                text=f"With 5 steps, {kind}2 does better than {kind}1.",
                better=f"AC(5), {kind}2",
                than=f"AC(5), {kind}1",
            )
            for kind in ("O", "OA")
        ),
        Better(
            text="With 20 steps, O1 does better than a bit.", better="AC(20), O1", than="AC(20), B1"
        ),
    ),
    differs=(
        "The grid is ours, as in [gravity](gravity.html). With the printed rates, .1 for the "
        "policy and .001 for values, nothing but walks without a memory is learned in 500,000 "
        "steps (68 to 71 steps to the goal, with every memory). Here the policy's is 1, and that "
        "of values tuned on 3 other seeds, .01 or .1. Scores are steps of an episode, at most "
        "100, in place of reward in 100 steps."
    ),
)
