"""Run README's Python examples and the installed command, outside the repository.

Usage: `python quick_start.py README.md`, in a folder that does not hold the packages. Examples
that train are left to `make train`.
"""

import re
import runpy
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

readme = Path(sys.argv[1]).resolve()
for package in ("scan", "rtrl", "zoo", "agents"):
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        sys.exit(f"{package} is not installed")
    origin = Path(spec.origin)
    if readme.parent in origin.parents and "site-packages" not in origin.parts:
        sys.exit(f"{package} comes from {origin}, not from the wheel")
    if not (origin.parent / "py.typed").exists():
        sys.exit(f"{package}/py.typed is missing from the wheel")

blocks = re.findall(r"^```python\n(.*?)^```", readme.read_text(), re.M | re.S)
blocks = [block for block in blocks if "agents.train" not in block]
if not blocks:
    sys.exit(f"{readme} has no Python example")
for block in blocks:
    exec(compile(block, str(readme), "exec"), {"__name__": "readme"})
print(f"trace-zoo {version('trace-zoo')}: {len(blocks)} examples of README ran")

# In this process, because importing the packages a second time takes longer than the command does.
sys.argv = [str(Path(sys.executable).with_name("trace-zoo")), "envs"]
runpy.run_path(sys.argv[0], run_name="__main__")  # it exits with the command's code
