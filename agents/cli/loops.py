"""How XLA compiles the loops of the command line's programs on a CPU."""

import os

_OPTION = "--xla_backend_extra_options="
_MOST_BYTES = 10_000_000


def compile_loops_whole() -> None:
    """Have XLA compile a loop of small steps as one function, before JAX computes anything.

    On a CPU it otherwise calls every operation of every step by itself, some 0.2 µs each, in loops
    that touch more than a kilobyte. Whole, learning at every step is twice as fast, and nothing
    that was measured is slower; loops with large products are left as they are. What
    `XLA_FLAGS` says of these options wins, and other versions of XLA pass over them.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if _OPTION not in flags:
        threshold = f"xla_cpu_small_while_loop_byte_threshold={_MOST_BYTES}"
        os.environ["XLA_FLAGS"] = f"{flags} {_OPTION}{threshold}".strip()
