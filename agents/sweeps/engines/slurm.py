"""Jobs of a Slurm cluster, by submitit."""

import contextlib
import re
import shlex
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from agents.sweeps.folder import write_exit_code
from agents.sweeps.job import Job, Outcome, apart, execute

_LOOK = 0.5  # seconds


def run(
    jobs: Sequence[Job],
    workers: int | None,
    options: Mapping[str, Any],
    asked_to_stop: Callable[[], bool],
) -> Generator[Outcome, None, None]:
    """Train runs as one array of jobs, and return each outcome when it is there.

    A job that is preempted, or has used up its time, lets the training write a checkpoint and is
    queued again. Whoever leaves the iteration before its end cancels the jobs.

    **Arguments:**

    - `jobs`: at least one, all of the same sweep.
    - `workers`: jobs that run at once; by default as many as the cluster lets.
    - `options`: of submitit's `update_parameters`, such as `timeout_min` or `slurm_partition`; and
      `cluster`, where `"local"` takes processes of this machine in place of Slurm.

    **Raises:**

    `ValueError` for an option or a value that submitit does not have, where there is no Slurm, and
    for what it refuses.
    """
    import submitit

    parameters = dict(options)
    cluster = parameters.pop("cluster", "slurm")
    # Slurm itself holds back the rest of an array; processes of this machine all begin at once.
    at_once = workers if workers and cluster == "local" else len(jobs)
    limit = {} if workers is None else {"slurm_array_parallelism": workers}
    # A folder of the user's is not taken for one of our packages in the job either.
    python = shlex.join([sys.executable, *apart(jobs[0].cwd)])
    waiting, pending = list(jobs), []

    def submit() -> None:
        if begun := waiting[: at_once - len(pending)]:
            del waiting[: len(begun)]
            with executor.batch():
                pending.extend([(executor.submit(Training(job)), job) for job in begun])

    try:
        executor = submitit.AutoExecutor(
            jobs[0].out / "submitit", cluster=cluster, slurm_python=python, local_python=python
        )
        executor.update_parameters(**{"name": "trace-zoo", **limit, **parameters})
        submit()
    except (NameError, AssertionError, TypeError, ValueError) as error:
        raise ValueError(f"`engine_options` are not submitit's: {error}") from None
    except RuntimeError as error:  # submitit's own are some too
        told = str(error).strip().partition("\n")[0]
        raise ValueError(f"`engine` (='slurm') cannot be used: {told}") from error
    try:
        while pending and not asked_to_stop():
            done = [(submitted, job) for submitted, job in pending if submitted.done()]
            pending[:] = [pair for pair in pending if pair not in done]
            submit()
            yield from (_outcome(submitted, job) for submitted, job in done)
            time.sleep(_LOOK if pending else 0)
    finally:
        for submitted, _ in pending:
            submitted.cancel()


class Training:
    """A run as submitit calls it, in a job; `checkpoint` is called before the job is queued again.

    **Arguments:**

    - `job`: the run.
    """

    def __init__(self, job: Job):
        self._job = job

    def __call__(self) -> Outcome:
        """Train, in a thread: signals interrupt the main one, where submitit deals with them."""
        self._stopping = threading.Event()
        outcomes: list[Outcome] = []

        def train() -> None:
            outcomes.append(execute(self._job, self._stopping.is_set))

        self._thread = threading.Thread(target=train)
        self._thread.start()
        try:
            self._thread.join()
        finally:
            self._stopping.set()
            self._thread.join()
        return outcomes[0]

    def checkpoint(self) -> Any:
        """Let the training write a checkpoint, and return what goes on from there."""
        from submitit.helpers import DelayedSubmission

        self._stopping.set()
        self._thread.join()
        return DelayedSubmission(Training(self._job))


def _outcome(submitted: Any, job: Job) -> Outcome:
    from submitit.core.utils import UncompletedJobError

    try:
        return submitted.result()
    except UncompletedJobError as error:
        problem = f"job {submitted.job_id}: {_told(str(error))}"
    if not job.log.exists():  # it ended before the training began
        log = submitted.paths.stderr
        problem += f"; {log if log.exists() else log.parent}"
        with contextlib.suppress(OSError):
            job.log.parent.mkdir(exist_ok=True)
            write_exit_code(job.out, job.name, 1)
    return Outcome(job, problem)


def _told(text: str) -> str:
    """One line of what submitit says of a job: it rules off what the job itself has said, of which
    the last line tells why."""
    head, *ruled = re.split(r"^-{10,}$", text, flags=re.MULTILINE)
    lines = [*head.split("\n")[:2], *(ruled[0].strip().split("\n")[-1:] if ruled else ())]
    return " ".join(filter(None, map(str.strip, lines)))
