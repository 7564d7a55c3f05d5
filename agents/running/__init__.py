"""Running agents: training, its folder and checkpoints, loading, curves."""

from agents.running.checkpoint import CheckpointError
from agents.running.curves import learning_curve
from agents.running.folder import RunFolderError
from agents.running.load import load_policy, load_run
from agents.running.signals import TrainingInterrupted
from agents.running.train import TrainingDiverged, TrainResult, train

__all__ = [
    "CheckpointError",
    "RunFolderError",
    "TrainResult",
    "TrainingDiverged",
    "TrainingInterrupted",
    "learning_curve",
    "load_policy",
    "load_run",
    "train",
]
