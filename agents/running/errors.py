"""Why training ends early, or not as it should."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be loaded; the message says what is wrong with it."""


class TrainingDiverged(RuntimeError):
    """Training met a number that is not finite; the last good checkpoint is kept."""


class TrainingInterrupted(KeyboardInterrupt):
    """Training was asked to stop, and has written a checkpoint before it did.

    **Arguments:**

    - `where`: a sentence about where it stopped and what holds that.
    - `number`: the signal that asked for it.
    """

    def __init__(self, where: str, number: int):
        super().__init__(f"{where} Go on with resume=True.")
        self.where, self.number = where, number


class RunsFailed(RuntimeError):
    """Some runs of a sweep did not come to their end; the message names them and their logs."""


class ProcessLost(RuntimeError):
    """Another process of the job has ended, or refuses to go on; the last checkpoint is kept."""
