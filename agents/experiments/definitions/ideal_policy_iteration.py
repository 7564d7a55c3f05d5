"""Where policy improvement with exact values ends, by the memory that actions write."""

from agents.experiments.claims import Alike, Better, Reaches
from agents.experiments.experiment import Experiment, Scale

MEMORIES = ("K1", "O1", "OA1", "OA2", "B1", "B2", "B5")

EXPERIMENT = Experiment(
    name="ideal_policy_iteration",
    question="Which memories does policy improvement use well, when all values are exact?",
    source="Toro Icarte et al. (2020), figures 5 and 7",
    algorithm="ideal_policy_iteration",
    environments={
        "recall_variation": {"env": "recall_variation"},
        "recall_four": {"env": "recall_four"},
    },
    variants={
        "none": {},
        **{name: {"env_options": {"external_memory": name}} for name in MEMORIES},
    },
    scales={
        "quick": Scale(100, 2),
        "small": Scale(2_500, 3),
        "full": Scale(10_000, 3),
    },
    claims=(
        Better(
            text="recall_variation: OA1 ends below what more memory, OA2, gets.",
            better="OA2",
            than="OA1",
            by=1.0,
            environments=("recall_variation",),
        ),
        Better(
            text="recall_variation: a bit, which can express the best policy as OA1 can, ends "
            "higher.",
            better="B1",
            than="OA1",
            by=1.0,
            environments=("recall_variation",),
        ),
        Reaches(
            text="recall_four: OA1 ends with the best policy, 1.",
            variant="OA1",
            value=0.99,
            environments=("recall_four",),
        ),
        Better(
            text="recall_four: bits end lower than OA1.",
            better="OA1",
            than="B1",
            by=0.2,
            environments=("recall_four",),
        ),
        Alike(
            text="recall_four: five bits end where one does.",
            one="B5",
            other="B1",
            within=0.01,
            environments=("recall_four",),
        ),
    ),
    differs=(
        "Nothing is sampled, so all seeds are the same. The step towards the greedy policy, .01, "
        "and that ties go to the larger write are this library's choice."
    ),
)
