"""Several processes of one job: how they find each other, and what they have to agree on.

Every process runs the same program on the devices of all of them, and each computes what lies on
its own. The first one writes.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from agents.running.errors import ProcessLost

# Seconds after which a silent process counts as lost, that ending together may take, and that one
# waits for another that works.
_SILENCE, _ENDING, _PATIENCE = 20, 10, 1800
_barriers = itertools.count()


def join(
    coordinator: str | None = None,
    process: int | None = None,
    processes: int | Literal["auto"] = "auto",
) -> None:
    """Make this process one of a job's, before JAX is used for anything else.

    **Arguments:**

    - `coordinator`: `host:port` where the first process listens.
    - `process`: this one's number, counted from 0.
    - `processes`: how many there are; `"auto"` for what SLURM, Open MPI or Kubernetes say, which
      then say the other two as well, where they are not given.

    **Raises:**

    `ValueError` if something is missing, or the others are not found; and with JAX before 0.9.1,
    which would not let a job be stopped.
    """
    if jax.__version_info__ < (0, 9, 1):
        raise ValueError(
            f"`processes` (={processes}) needs JAX 0.9.1 or newer; this is {jax.__version__}."
        )
    if processes != "auto" and (coordinator is None or process is None):
        raise ValueError(
            f"`processes` (={processes}) needs `coordinator`, such as localhost:1234, and "
            "`process`, this one's number; or let it be auto."
        )
    if processes != "auto" and not 0 <= (process or 0) < processes:
        raise ValueError(f"`process` (={process}) must be in 0 … {processes - 1}.")
    # Programs that run at the same time on a CPU would take each other's messages.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    # It takes SIGTERM, and tells nobody: a job that is stopped while it compiles would go on.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            coordinator,
            None if processes == "auto" else processes,
            process,
            heartbeat_timeout_seconds=_SILENCE,
            shutdown_timeout_seconds=_ENDING,
        )
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"`processes` (={processes}) did not find each other: {error}") from error


def several() -> bool:
    """Tell whether the job has other processes."""
    return jax.process_count() > 1


def writes() -> bool:
    """Tell whether this is the process that writes."""
    return jax.process_index() == 0


def fetch(tree: Any) -> Any:
    """Return a pytree of arrays as NumPy's, in whole, on every process; all have to call."""
    if not several():
        return jax.device_get(tree)
    return jax.tree.map(_fetched, tree)


def _fetched(leaf: Any) -> Any:
    # Leaf by leaf, so that no device ever holds more than one in whole.
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        data = _fetched(jax.random.key_data(leaf))
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        if leaf.is_fully_replicated:
            return np.asarray(leaf.addressable_data(0))
        leaf = multihost_utils.process_allgather(leaf, tiled=True)
    return jax.device_get(leaf)


def spread(leaf: Any, where: NamedSharding) -> jax.Array:
    """Make an array over the devices of all processes of one that each of them has in whole.

    One that is there already is returned as it is.
    """
    if isinstance(leaf, jax.Array) and leaf.sharding == where:
        return leaf
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        data = spread(jax.random.key_data(leaf), where)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
    whole = np.asarray(leaf)
    return jax.make_array_from_callback(whole.shape, where, lambda part: whole[part])


@contextlib.contextmanager
def first_decides() -> Iterator[None]:
    """Let the others go on only where the first process has come through the block.

    **Raises:**

    What the block raises; in the others `ProcessLost` where it has raised in the first.
    """
    verdict = False
    try:
        yield
        verdict = True
    finally:
        if several():
            agreed = bool(multihost_utils.broadcast_one_to_all(np.bool_(verdict)))
    if several() and not agreed:
        raise ProcessLost("the first process has refused the run, and says why.")


def wait_for_all() -> None:
    """Wait until every process has come here, which may take as long as compiling."""
    if several():
        wait_at_barrier()


def wait_at_barrier() -> None:
    """Wait for the other processes by the coordinator, whether there are any or not."""
    # The public way, `multihost_utils.sync_global_devices`, is a program on the devices, which wait
    # for each other for half a minute only. The coordinator's barrier is no public part of JAX, so
    # that nothing but a job of several processes imports it; a quick test calls this.
    from jax._src import distributed

    client: Any = distributed.global_state.client
    client.wait_at_barrier(f"trace-zoo {next(_barriers)}", 1000 * _PATIENCE)


class Agreement:
    """Finds the largest of a number that each process has, without anybody waiting for it."""

    def __init__(self):
        mesh = Mesh(np.array(jax.devices()), ("device",))
        self._each = NamedSharding(mesh, PartitionSpec("device"))
        self._largest = jax.jit(
            lambda x: x.max(), out_shardings=NamedSharding(mesh, PartitionSpec())
        )
        self._count = mesh.size

    def on(self, number: Callable[[], int | None]) -> Callable[[], int | None]:
        """Begin to agree on a positive number, or none; call what is returned to have it.

        Alone, a process asks itself as late as that.
        """
        if not several():
            return number
        own = np.full(1, number() or 0, np.int32)
        array = jax.make_array_from_callback((self._count,), self._each, lambda _: own)
        largest = self._largest(array)
        return lambda: int(largest.addressable_data(0)) or None


@contextlib.contextmanager
def telling_who_is_lost() -> Iterator[None]:
    """Say of an operation between processes that failed what has become of the job.

    **Raises:**

    `ProcessLost`.
    """
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if not several() or "RESOURCE_EXHAUSTED" in str(error):
            raise
        raise ProcessLost(
            "another process of this job has ended, or cannot be reached any more "
            f"({str(error).splitlines()[0][:200]}). The last checkpoint is kept: begin all "
            "processes again with `resume`."
        ) from error
