"""What the experiments on trace conditioning share."""

from typing import Any

from agents.experiments.experiment import Scale

RING: dict[str, Any] = {"r_min": 0.5, "max_phase": 0.5}
"""Options of complex cells that begin with the slow phases of this task."""

BASE: dict[str, Any] = {"env": "trace_conditioning", "rollout_length": 10_000}

SCALES = {
    "quick": Scale(10_000, 2),
    "small": Scale(200_000, 5),
    "full": Scale(2_000_000, 10, tuning_seeds=5),
}
