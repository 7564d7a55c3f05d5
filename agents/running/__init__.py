"""Running agents: training, its folder and checkpoints, loading, curves."""

from agents.running.checkpoint import CheckpointError as CheckpointError
from agents.running.curves import learning_curve as learning_curve
from agents.running.folder import RunFolderError as RunFolderError
from agents.running.load import load_policy as load_policy
from agents.running.load import load_run as load_run
from agents.running.signals import TrainingInterrupted as TrainingInterrupted
from agents.running.train import TrainingDiverged as TrainingDiverged
from agents.running.train import TrainResult as TrainResult
from agents.running.train import train as train

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
