"""Where the runs of a sweep are trained, an engine a file."""

from agents.sweeps.engines import local, ray, slurm

__all__ = ["local", "ray", "slurm"]
