"""brax's robots by name."""

from ..core.entries import Entries
from .brax_env import LAYOUTS, SUFFIXES, BraxEnvironment

ENTRIES: Entries = {
    **{
        f"brax/{body}{SUFFIXES[observe]}": (
            BraxEnvironment,
            {"env_name": body, "observe": observe},
        )
        for body in LAYOUTS
        for observe in ("all", "positions", "velocities")
    },
    "brax/reacher-pomdp": (BraxEnvironment, {"env_name": "reacher", "observe": "target_once"}),
}
"""By name: class, and the constructor's arguments that the name fixes."""
