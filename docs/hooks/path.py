"""Let executed pages import the packages and `docs._helpers`, and compile quickly."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

# The pages' programs run for seconds, and compiling them took most of a build: 300 s of the
# processor's time without these, half of that with them. At level 0 the longest loops ran five
# times slower. What the environment says comes later, and wins.
_QUICKLY = [
    "--xla_backend_optimization_level=1",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_parallel_codegen_split_count=1",
]
# XLA ends a program at a flag that it does not know, as this one from JAX 0.11 on.
if version("jaxlib").startswith(("0.8.", "0.9.", "0.10.")):
    _QUICKLY.append("--xla_cpu_use_fusion_emitters=false")


def on_startup(**_) -> None:
    """Called by mkdocs once; it restores `sys.path` after importing this file, so not above."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # the pages are the same on every machine
    os.environ.setdefault("MPLBACKEND", "Agg")
    os.environ["XLA_FLAGS"] = " ".join([*_QUICKLY, os.environ.get("XLA_FLAGS", "")])
    root = Path(__file__).resolve().parents[2]
    # For `make serve`, and the next build: most of a page's time is still its compilation.
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(root / ".cache" / "docs"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    sys.path.insert(0, str(root))
