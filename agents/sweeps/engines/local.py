"""Processes of this machine."""

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from agents.sweeps.job import Job, Outcome, execute

_LOOK = 0.2  # seconds


def run(
    jobs: Sequence[Job], workers: int, asked_to_stop: Callable[[], bool]
) -> Generator[Outcome, None, None]:
    """Train runs in processes, so many at once, and return each outcome when it is there.

    Once asked to stop, no other run is begun, and those that are being trained end with a
    checkpoint. Whoever leaves the iteration before its end kills them.
    """
    left = threading.Event()

    def train(job: Job) -> Outcome | None:
        # Where another has just been stopped, the pool may take this one before it is cancelled.
        return None if asked_to_stop() else execute(job, asked_to_stop, left.is_set)

    with ThreadPoolExecutor(workers) as pool:
        pending = {pool.submit(train, job) for job in jobs}
        try:
            while pending:
                done, pending = wait(pending, _LOOK, return_when=FIRST_COMPLETED)
                outcomes = (future.result() for future in done if not future.cancelled())
                yield from (outcome for outcome in outcomes if outcome is not None)
                if asked_to_stop():
                    pending = {future for future in pending if not future.cancel()}
        except BaseException:
            left.set()
            for future in pending:
                future.cancel()
            raise
