"""Running agents: training, its folder and checkpoints, loading, curves."""

from typing import TYPE_CHECKING

from agents.lazy import attach

if TYPE_CHECKING:
    from agents.running.curves import learning_curve as learning_curve
    from agents.running.errors import CheckpointError as CheckpointError
    from agents.running.errors import TrainingDiverged as TrainingDiverged
    from agents.running.errors import TrainingInterrupted as TrainingInterrupted
    from agents.running.folder import RunFolderError as RunFolderError
    from agents.running.load import load_policy as load_policy
    from agents.running.load import load_run as load_run
    from agents.running.scalars import Scalars as Scalars
    from agents.running.scalars import ScalarsError as ScalarsError
    from agents.running.scalars import read_scalars as read_scalars
    from agents.running.train import TrainResult as TrainResult
else:
    # Not `train`, which is the module of that name here, and `agents.train` to everybody.
    __getattr__, __dir__, __all__ = attach(__name__)
