"""Compiled programs, kept in the user's cache folder from one start to the next."""

import contextlib
import os
from pathlib import Path

VARIABLE = "TRACE_ZOO_CACHE"
_MOST_BYTES = 2 * 1024**3


def cache_folder() -> Path | None:
    """Return where compiled programs are kept.

    It is the folder that `TRACE_ZOO_CACHE` names, `None` where that is empty; without it
    `trace-zoo/compiled` in `XDG_CACHE_HOME` or `~/.cache`.
    """
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named) if named else None
    usual = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        home = usual if usual.is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return None
    return home / "trace-zoo" / "compiled"


def keep_compiled() -> None:
    """Let JAX keep compiled programs, if neither the user nor the program has told it where.

    What the environment says of JAX's own settings wins, and a folder that cannot be used is not
    used.
    """
    import jax

    folder = cache_folder()
    if folder is None or getattr(jax.config, "jax_compilation_cache_dir") is not None:  # noqa: B009
        return
    try:
        # Programs are executed as they are read: nobody else is to write there.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        usable = os.access(folder, os.R_OK | os.W_OK | os.X_OK)
        if usable:
            _remove_torn(folder)
    except OSError:
        usable = False
    settings = {
        "jax_compilation_cache_dir": str(folder),
        "jax_compilation_cache_max_size": _MOST_BYTES,
        # By default programs that compile within a second are left out: most of ours, together
        # several seconds.
        "jax_persistent_cache_min_compile_time_secs": 0.1,
    }
    for name, value in settings.items() if usable else ():
        if name.upper() not in os.environ:
            jax.config.update(name, value)


def _remove_torn(folder: Path) -> None:
    """Remove programs that were not written to the end, for want of space or by a kill.

    JAX writes a program, then when it was used last, and keeps no other where one lacks the latter.
    """
    from filelock import FileLock, Timeout

    # JAX's own lock: who holds it is writing, and removes nothing.
    with contextlib.suppress(Timeout), FileLock(folder / ".lockfile", timeout=0):
        for program in folder.glob("*-cache"):
            if not program.with_name(program.name.removesuffix("cache") + "atime").exists():
                program.unlink(missing_ok=True)
