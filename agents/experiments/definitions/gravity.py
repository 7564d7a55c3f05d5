"""Tabular values with memories that actions write, in a grid with a hidden force."""

from agents.experiments.claims import Better, Reaches
from agents.experiments.experiment import Experiment, Scale


def _q(memory: str):
    return {"env_options": {"external_memory": memory}, "rule": "q_learning"}


def _sarsa(memory: str, trace_decay: float):
    return {
        "env_options": {"external_memory": memory},
        "traces": "true_online",
        "trace_decay": trace_decay,
    }


EXPERIMENT = Experiment(
    name="gravity",
    question="Which memory do tabular values use, to reach a goal past a hidden force?",
    source="Toro Icarte et al. (2020), figures 2 (Q-learning) and 11",
    algorithm="tabular",
    base={"epsilon": 0.01, "initial_value": 1.0},
    environments={"gravity": {"env": "gravity"}},
    variants={
        **{f"Q, {m}": _q(m) for m in ("B0", "K1", "B1", "O1", "OA1")},
        **{f"Sarsa({x:g}), {m}": _sarsa(m, x) for m in ("B1", "O1") for x in (0.0, 0.5, 1.0)},
    },
    scales={
        "quick": Scale(2_000, 2),
        "small": Scale(500_000, 10),
        "full": Scale(5_000_000, 30),
    },
    metric="length",
    falls=True,
    claims=(
        Better(
            text="Q-learning: O1 needs fewer steps to the goal than a bit.",
            better="Q, O1",
            than="Q, B1",
        ),
        Better(text="Q-learning: O1 needs fewer than K1.", better="Q, O1", than="Q, K1"),
        Reaches(
            text="Sarsa(.5) with O1 learns: less than 20 steps on average, of which 10 are the "
            "fewest.",
            variant="Sarsa(0.5), O1",
            value=-20.0,
        ),
        Better(
            text="With a bit, Sarsa needs λ = 1: it does better than with 0.",
            better="Sarsa(1), B1",
            than="Sarsa(0), B1",
        ),
    ),
    differs=(
        "The paper's grid has no walls, and its best path needs no memory: ours closes the upper "
        "rows but for the left column, with the same places and the same best path of 10 steps. "
        "Scores are steps of an episode, at most 100, in place of reward in 100 steps; Sarsa "
        "begins with values of 1, as Q-learning does. ε is .01, α .1 and γ .95 as there."
    ),
)
