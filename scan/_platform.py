"""The one place that chooses a method per platform."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax

from scan.programs import size_of

METHODS = ("auto", "sequential", "associative")
FEWEST_STEPS = 32
"""The length from which chunks of matrix products are faster on a CPU than all states."""
MOST_UNROLLED = {"units": 64, "dense": 8}
"""Steps in one turn of a loop where each turn has to be started from outside, as on a GPU: an H200
took as long for a turn of 64 elementwise steps as for 2, and gained little by more than 8 with a
product of matrices in each."""
LARGEST_TURN = 1024
"""Operations in such a turn: programs are compiled for as long as they are large."""

_chosen = jax.make_user_context()
"""The platform that what is traced is for, `"cpu"` or `"other"`: `None` where that is open yet."""


def check_method(method: str, choices: tuple[str, ...] = METHODS) -> str:
    """The option `method` of a scan, or `ValueError` with those there are.

    **Arguments:**

    - `method`: as given.
    - `choices`: those there are.
    """
    if method not in choices:
        raise ValueError(f"`method` (={method!r}) must be one of {', '.join(choices)}.")
    return method


def steps_at_once(coupling: str, step: Callable[..., Any], *arguments: Any) -> int:
    """How many steps of a loop one turn of it shall take, other than on a CPU.

    **Arguments:**

    - `coupling`: `"units"` where a step is elementwise, else `"dense"`.
    - `step`: a step of the loop.
    - `arguments`: shapes and dtypes of what it is called with.
    """
    size = size_of(jax.make_jaxpr(step)(*arguments).jaxpr)
    return max(1, min(MOST_UNROLLED[coupling], LARGEST_TURN // max(1, size)))


def loop_or_tree(
    loop: Callable[..., Any], tree: Callable[..., Any], *arguments: Any, method: str = "auto"
) -> Any:
    """Call the one of two equal functions that suits the platform.

    **Arguments:**

    - `loop`: goes through time one step after another: fast on a CPU, whose cores are few.
    - `tree`: does more work in a depth of log time: fast where thousands of threads wait for work.
    - `arguments`: of either, pytrees of arrays. `None` is one.
    - `method`: `"sequential"` is the loop and `"associative"` the tree; `"auto"` chooses when the
      program is lowered, for the platform that it is lowered for.

    **Returns:**

    What the function returns.

    **Raises:**

    `ValueError` for an unknown method.
    """
    if check_method(method) != "auto":
        return (loop if method == "sequential" else tree)(*arguments)
    # A tree needs to know its number of steps, which an export for any leaves open.
    if not all(isinstance(n, int) for x in jax.tree.leaves(arguments) for n in x.shape[:1]):
        return loop(*arguments)
    return _by_platform(loop, tree, *arguments)


def chunks_or_states(
    chunks: Callable[..., Any], states: Callable[..., Any], *arguments: Any, method: str = "auto"
) -> Any:
    """Call the one of two equal functions that suits the platform and the number of steps.

    **Arguments:**

    - `chunks`: makes the states at the ends of chunks only: matrix products, and little memory.
    - `states`: makes those of all steps.
    - `arguments`: of either: a state, the inputs with a leading time axis, and others.
    - `method`: `"chunks"`; `"auto"`, which takes chunks on a CPU from 32 steps on, and all states
      on a GPU, where chunks one after another took ten times as long, and side by side were not
      measured; any other is one of `states`.

    **Returns:**

    What the function returns.
    """
    if method == "chunks":
        return chunks(*arguments)
    time = jax.tree.leaves(arguments[1])[0].shape[0]
    # Chunks of a number of steps that is not known, as in an export for any, cannot be laid out.
    if method != "auto" or not isinstance(time, int) or time < FEWEST_STEPS:
        return states(*arguments)
    return _by_platform(chunks, states, *arguments)


def traced_for(platform: str) -> AbstractContextManager[Any]:
    """A context in which one side of every choice is traced: that of the platform.

    For programs that run nowhere else: lowered for another platform they would be right, and slow.

    **Arguments:**

    - `platform`: as JAX names that of a device, such as `"cpu"` or `"gpu"`.
    """
    return _chosen("cpu" if platform == "cpu" else "other")


def _by_platform(on_cpu, elsewhere, *arguments):
    # What is traced inside of such a choice has its platform: to leave that open again would trace
    # both sides of every choice in there.
    if _chosen.value is not None:
        return (on_cpu if _chosen.value == "cpu" else elsewhere)(*arguments)
    # Not `jax.default_backend()`: one traced program may be lowered for another platform than the
    # one it was traced on, and for several by `jax.export`.
    return jax.lax.platform_dependent(
        *arguments, cpu=_side_of("cpu", on_cpu), default=_side_of("other", elsewhere)
    )


def _side_of(side, function):
    # A function of its own, because JAX hashes what it is given here, and a bound method of a
    # module with tracers has no hash.
    def chosen(*arguments):
        with _chosen(side):
            return function(*arguments)

    return chosen
