"""Too little memory: what was asked for, and which settings to lower."""

import contextlib
import math
import re
from collections.abc import Iterator
from typing import Any

import jax

import zoo

# Numbers of an agent's settings that memory grows with.
_LARGE = ("num_envs", "rollout_length", "unroll_length", "replay_steps", "batch_steps")
_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


@contextlib.contextmanager
def telling_what_to_lower(agent: Any, **sizes: int) -> Iterator[None]:
    """Say of too little memory what was asked for, and what to lower.

    **Arguments:**

    - `agent`: what is run.
    - `sizes`: other numbers that memory grows with.

    **Raises:**

    `MemoryError`, in one line.
    """
    try:
        yield
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        text = str(error)
        if isinstance(error, jax.errors.JaxRuntimeError) and not _is_memory(text):
            raise
        memory = getattr(agent, "memory", None)
        found = {name: getattr(agent, name, None) for name in _LARGE}
        if isinstance(memory, zoo.Spec):
            found |= {"hidden": memory.hidden, "layers": memory.layers}
        lower = [f"`{name}` (={size})" for name, size in (found | sizes).items() if (size or 0) > 1]
        *first, last = lower or ["what is asked for"]
        words = f"{', '.join(first)} or {last}" if first else last
        raise MemoryError(f"out of memory: {_asked_for(text)} Lower {words}.") from error


def check_size(state: Any) -> None:
    """Raise `MemoryError` for a state that no machine holds, of which XLA would crash.

    **Arguments:**

    - `state`: shapes and dtypes.
    """
    size = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    if size > 2**48:
        raise MemoryError(f"{size} bytes")


def _is_memory(text: str) -> bool:
    return "RESOURCE_EXHAUSTED" in text or "out of memory" in text.lower()


def _asked_for(text: str) -> str:
    """The largest size that an error of XLA names, in words."""
    sizes = [
        float(number) * 1024 ** _UNITS[unit]
        for number, unit in re.findall(r"(\d+(?:\.\d+)?) ?([KMGTP]?)i?B(?:ytes|YTES)?\b", text)
    ]
    sizes += [float(number) for number in re.findall(r"(\d+) bytes", text)]
    if not sizes:
        return "there was less than the program needs."
    size = max(sizes)
    unit = next(unit for unit in "PTGMK" if size >= 1024 ** _UNITS[unit] or unit == "K")
    return f"{size / 1024 ** _UNITS[unit]:.1f} {unit}iB were asked for."
