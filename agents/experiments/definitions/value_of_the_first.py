"""How much a value depends on the one observation that the task needs, the first."""

import dataclasses

import jax

from agents.acting import Policy
from agents.agent import AbstractAgent
from agents.analysis import episode_sensitivities, relative_sensitivity
from agents.experiments.claims import Better
from agents.experiments.definitions import value_memory


def of_the_first(agent: AbstractAgent, policy: Policy) -> float:
    """Return the share of the first observation in the value's sensitivity.

    Episodes are equally long, so that the first is the oldest of all.
    """
    found = episode_sensitivities(agent.actor, policy, episodes=32, key=jax.random.key(0))
    return float(relative_sensitivity(found)[-1])


EXPERIMENT = dataclasses.replace(
    value_memory.EXPERIMENT,
    name="value_of_the_first",
    question="How much do values depend on the first observation, where it is all that is needed?",
    source="Morad et al. (2024), figure 8",
    environments={"RepeatFirstEasy": {"env": "RepeatFirstEasy"}},
    metric="share of the first observation in the sensitivity",
    probe=of_the_first,
    falls=False,
    claims=tuple(
        Better(
            text=f"{label}: the value depends more on the first card after the tape than after "
            "segments.",
            better=f"{label}, tape",
            than=f"{label}, segments of 10",
        )
        for label in value_memory.MEMORIES
    ),
)
