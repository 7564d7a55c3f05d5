"""Diagonal cells that all learn with exact sensitivities, by size."""

from typing import Any

import zoo
from agents.experiments.claims import Better
from agents.experiments.experiment import Experiment, Lines
from agents.experiments.trace_conditioning import BASE, RING, SCALES
from agents.learning import RTRL

SIZES = (5, 10, 20, 40)
CELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "RTU": ("rtu", RING),
    "RTU, no activation": ("rtu", {**RING, "activation": "identity"}),
    "nonlinear RTU": ("rtu", {**RING, "nonlinear": True}),
    "LRU": ("lru", RING),
    "block diagonal": ("block_diagonal", {"r_min": 0.5}),
}

EXPERIMENT = Experiment(
    name="trace_units",
    question="Are recurrent trace units better than their relatives, when all of them learn with "
    "exact sensitivities?",
    source="Elelimy et al. (2024), figures 1 and E.1",
    algorithm="streaming_td",
    base={**BASE, "gradient": RTRL()},
    environments={"E = 10": {"env_options": {"expected_isi": 10}}},
    variants={
        f"{label}, {size}": {"memory": zoo.spec(name, hidden=size, **options)}
        for label, (name, options) in CELLS.items()
        for size in SIZES
    },
    tune={"learning_rate": (1e-3, 3e-3)},
    scales=SCALES,
    measure="area",
    metric="return_error",
    falls=True,
    claims=(
        *(
            Better(
                text=f"RTU has a smaller error than LRU with {size} units.",
                better=f"RTU, {size}",
                than=f"LRU, {size}",
            )
            for size in SIZES
        ),
        *(
            Better(
                text=f"RTU has a smaller error than free blocks with {size} units.",
                better=f"RTU, {size}",
                than=f"block diagonal, {size}",
            )
            for size in SIZES
        ),
        Better(
            text="An activation behind the recurrence lowers the error of 20 units.",
            better="RTU, 20",
            than="RTU, no activation, 20",
        ),
    ),
    lines=Lines("units", {label: {size: f"{label}, {size}" for size in SIZES} for label in CELLS}),
    differs=(
        "200,000 steps in place of 2 million, E = 10, 5 seeds, two rates tried on 2 others; "
        "TD(.9). All gradients are exact: the published online LRU and RTU are not. Cells begin "
        "with moduli above .5 and, where they have phases, below .5 radians per step; free blocks "
        "begin as rotations by any angle."
    ),
)
