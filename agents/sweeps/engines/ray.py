"""Workers of a Ray cluster."""

import logging
import math
import os
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from agents.sweeps.job import Job, Outcome, execute

_LOOK = 0.5  # seconds


def run(
    jobs: Sequence[Job],
    workers: int | None,
    options: Mapping[str, Any],
    asked_to_stop: Callable[[], bool],
) -> Generator[Outcome, None, None]:
    """Train runs as tasks of a cluster, and return each outcome when it is there.

    The cluster is that of `RAY_ADDRESS`, else the one that runs on this machine, else one that is
    started, and stopped at the end. A task whose worker dies is tried again, on another one, and
    goes on from the run's checkpoint.

    **Arguments:**

    - `workers`: runs at once; by default what the cluster has place for.
    - `options`: of `ray.remote`, such as `num_cpus` (1) or `num_gpus` of a run.

    **Raises:**

    `ValueError` for an option that Ray does not have, a value that it does not take, or more than
    a node of a cluster that does not grow has; `ConnectionError` if there is no cluster at
    `RAY_ADDRESS`.
    """
    import ray

    options = dict[str, Any]({"num_cpus": 1, **options})
    try:
        task = ray.remote(**options)(execute)
    except TypeError as error:
        raise ValueError(f"`engine_options`: {error}") from None
    own = _connect(None if workers is None else math.ceil(workers * (options["num_cpus"] or 0)))
    try:
        _check_place(options, grows=not own)
        waiting, pending = list(reversed(jobs)), {}
        while waiting or pending:
            while waiting and len(pending) < (workers or len(jobs)):
                job = waiting.pop()
                pending[task.options(name=job.name).remote(job)] = job
            done, _ = ray.wait(list(pending), timeout=_LOOK)
            for reference in done:
                yield _outcome(pending.pop(reference), reference)
            if asked_to_stop():
                waiting.clear()
                # A KeyboardInterrupt in the worker, which lets `execute` stop the training.
                for reference in pending:
                    ray.cancel(reference)
                for reference, job in pending.items():
                    yield _outcome(job, reference)
                return
    finally:
        ray.shutdown()


def _connect(cpus: int | None) -> bool:
    """Whether a cluster of our own was started."""
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.WARNING}
    if os.environ.get("RAY_ADDRESS"):
        ray.init(**quiet)
        return False
    try:
        ray.init("auto", **quiet)
        return False
    except ConnectionError:
        with warnings.catch_warnings():
            # JAX warns of every fork: here another program follows at once.
            warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
            ray.init(num_cpus=cpus, include_dashboard=False, **quiet)
    return True


def _check_place(options: Mapping[str, Any], grows: bool) -> None:
    """Refuse what no node has, or warn where one may come that has it: Ray waits without a word."""
    import ray

    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    for option, resource in (("num_cpus", "CPU"), ("num_gpus", "GPU"), ("memory", "memory")):
        asked = options.get(option) or 0
        most = max((node.get(resource, 0) for node in nodes), default=0)
        if asked <= most:
            continue
        text = f"`engine_options` ask for {option}={asked}, and no node has more than {most:g}"
        if not grows:
            raise ValueError(f"{text}.")
        warnings.warn(f"{text}: the runs wait until one is there that has.", stacklevel=2)


def _outcome(job: Job, reference: Any) -> Outcome:
    import ray
    from ray.exceptions import RayError, TaskCancelledError

    try:
        return ray.get(reference)
    except TaskCancelledError:
        return Outcome(job, "stopped")
    except RayError as error:  # such as of a worker that died too often
        return Outcome(job, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
