"""Many runs: a grid of settings, and what trains its runs."""

from agents.sweeps.grid import Grid, read_axes, read_grid
from agents.sweeps.job import Job, Outcome, execute

__all__ = ["Grid", "Job", "Outcome", "execute", "read_axes", "read_grid"]
