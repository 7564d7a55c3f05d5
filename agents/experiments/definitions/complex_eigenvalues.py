"""Whether the eigenvalues of a dense recurrence become complex as it learns."""

import numpy as np

import zoo
from agents.acting import ByPolicy, Policy
from agents.agent import AbstractAgent
from agents.analysis import eigenvalues
from agents.experiments.claims import Reaches
from agents.experiments.experiment import Experiment, Scale
from agents.learning import TBPTT

NEGLIGIBLE = 1e-6


def complex_eigenvalues(agent: AbstractAgent, policy: Policy) -> float:
    """Count the eigenvalues off the real axis, of the Jacobian at an episode's beginning."""
    assert isinstance(policy.behavior, ByPolicy)
    found = eigenvalues(policy.behavior.network.memory)
    return float(np.sum(np.abs(np.imag(found)) > NEGLIGIBLE))


EXPERIMENT = Experiment(
    name="complex_eigenvalues",
    question="Do the eigenvalues of a dense recurrence become complex where one step has to be "
    "remembered?",
    source="Elelimy et al. (2024), appendix A.3, figure 8",
    algorithm="ppo",
    base={
        "memory": zoo.spec("elman", hidden=2),
        "gradient": TBPTT(4),
        "encoder_size": 0,
        "head_size": 0,
        "num_envs": 8,
        "rollout_length": 64,
        "minibatches": 4,
        "learning_rate": 1e-2,
        "entropy_coefficient": 0.0,
        "discount": 0.0,
    },
    environments={"three_state": {"env": "three_state", "env_options": {"scored": "all"}}},
    variants={"Elman, 2 units": {}},
    scales={
        "quick": Scale(1_024, 3),
        "small": Scale(200_000, 50),
        "full": Scale(1_000_000, 200),
    },
    metric="complex eigenvalues",
    probe=complex_eigenvalues,
    claims=(
        Reaches(
            text="On average more than 1.5 of the 2 eigenvalues are complex.",
            variant="Elman, 2 units",
            value=1.5,
        ),
    ),
    differs=(
        "The next observation is predicted by the actions of PPO, in place of a supervised loss, "
        "with TBPTT(4); eigenvalues are counted once for each of many seeds after training, in "
        "place of after every update of one run; they are those of a step's Jacobian at the "
        "beginning of an episode."
    ),
)
