"""Why training ends early, or not as it should."""

CANNOT_GO_BACK = "Environments of gymnasium cannot go back to where they were."
POLICY_IS_LEFT = f"{CANNOT_GO_BACK} Its policy can be loaded."


class CheckpointError(ValueError):
    """A checkpoint that cannot be loaded; the message says what is wrong with it."""


class OtherStateError(CheckpointError):
    """A checkpoint is sound, and of arrays that are not those of the agent."""


class TrainingDiverged(RuntimeError):
    """Training met a number that is not finite; the last good checkpoint is kept."""


class TrainingInterrupted(KeyboardInterrupt):
    """Training was asked to stop, and has written a checkpoint before it did.

    **Arguments:**

    - `where`: a sentence about where it stopped and what holds that.
    - `number`: the signal that asked for it.
    - `resumable`: whether it can go on from there.
    """

    def __init__(self, where: str, number: int, *, resumable: bool = True):
        on = "Go on with resume=True." if resumable else POLICY_IS_LEFT
        super().__init__(f"{where} {on}")
        self.where, self.number, self.resumable = where, number, resumable


class RunsFailed(RuntimeError):
    """Some runs of a sweep did not come to their end; the message names them and their logs."""


class ProcessLost(RuntimeError):
    """Another process of the job has ended, or refuses to go on; the last checkpoint is kept."""
