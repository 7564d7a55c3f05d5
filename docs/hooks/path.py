"""Let executed pages import the packages and `docs._helpers`, however mkdocs was started."""

import os
import sys
from pathlib import Path


def on_startup(**_) -> None:
    """Called by mkdocs once; it restores `sys.path` after importing this file, so not above."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # the pages are the same on every machine
    os.environ.setdefault("MPLBACKEND", "Agg")
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
