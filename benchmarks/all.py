"""All tables of a machine, in one folder, with a log of each.

`python -m benchmarks.all --out FOLDER`. Each part is a process of its own with a share of the
time, so that one that fails or takes too long loses nothing of the others: what it printed stays.
What is measured is written down at once. With `JAX_PLATFORMS=cuda,cpu` the programs run on a GPU;
`make bench-gpu` says so, and takes `--few` sizes.
"""

import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import tyro

from benchmarks._command import check_names
from benchmarks._measure import LOCK

# Shares of the whole time, the most wanted first; what a part leaves goes to those behind it.
PARTS = {
    "kernel": 3.0,
    "scans": 4.0,
    "ppo": 3.0,
    "gradients": 2.0,
    "zoo": 3.0,
    "turns": 2.0,
    "newton": 2.0,
    "matrices": 2.0,
    "envs": 2.0,
    "streaming": 1.0,
    "depth": 1.0,
}
# With `few`: the sizes that tell most, on a device that is wide and lent for minutes.
FEW = {
    "kernel": "--shapes 1024x16x256 16384x1x256 128x4096x64 --layouts 32x1x8x2x1x8 32x1x2x4x8x1",
    "scans": "--times 1024 --widths 16x256 --coefficients constant --seconds 0.3 --compilations 1"
    " --unrolls 1 16 64 --chunks 16 64",
    "ppo": "--choices RTRL(8) RTRL(32) TBPTT(8) 'RTRL(8), bfloat16' --num-envs 4096 --hidden 32"
    " --encoder-sizes 0 --seconds 1.5",
    "gradients": "--cells rtu gru --named",
    "zoo": "--cells mlp rtu lru s5 mingru ffm linear_attention mlstm elstm gru --times 1024",
    "turns": "--cells elstm gru --turns 8 64",
    "newton": "--cells elstm gru --times 1024",
    "matrices": "--cells mlstm deltanet --times 1024 --widths 32",
    "envs": "--names RepeatPreviousEasy CartPole-v1 MineSweeperEasy hallway_keys --envs 64 4096",
}


@dataclass(frozen=True)
class Options:
    """What is measured, how long, and where to."""

    out: Path
    """Folder for `NAME.json`, `NAME.txt` with what was printed, and `summary.txt`."""
    parts: tuple[str, ...] = tuple(PARTS)
    """Names of benchmarks."""
    minutes: float = 60.0
    """Time for all parts together."""
    together: int = 1
    """Parts that compile at a time, for a machine with many cores; they measure in turn."""
    few: bool = False
    """Only the sizes that tell most, and no parts but those that have such."""
    quick: bool = False
    """A short form with tiny sizes, for tests."""


def run(options: Options) -> dict[str, str]:
    """Run the parts, one after the other or some side by side.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:**

    What became of each, in words.
    """
    check_names("parts", options.parts, PARTS)
    parts = [name for name in options.parts if name in FEW or not options.few]
    if not parts:
        raise ValueError(
            f"`parts` (={', '.join(options.parts)}) must hold one with `few` sizes: "
            f"{', '.join(FEW)}."
        )
    options.out.mkdir(parents=True, exist_ok=True)
    end, outcomes = time.monotonic() + 60 * options.minutes, {}

    def run_part(number: int) -> str:
        # One by one each has a share of what is left, and side by side all of it.
        share = 1.0
        if options.together == 1:
            share = PARTS[parts[number]] / sum(PARTS[later] for later in parts[number:])
        return _run_part(parts[number], share * max(0.0, end - time.monotonic()), options)

    with ThreadPoolExecutor(options.together) as pool:
        running = {pool.submit(run_part, number): name for number, name in enumerate(parts)}
        for done in as_completed(running):
            name = running[done]
            outcomes[name] = done.result()
            print(f"{name}: {outcomes[name]}", flush=True)
            lines = [f"{part}: {said}\n" for part, said in outcomes.items()]
            (options.out / "summary.txt").write_text("".join(lines))
    print(f"tables and logs are in {options.out}")
    return outcomes


def _run_part(name: str, seconds: float, options: Options) -> str:
    began = time.monotonic()
    words = [sys.executable, "-u", "-m", f"benchmarks.{name}", "--markdown"]
    words += ["--json", str(options.out / f"{name}.json"), *["--quick"] * options.quick]
    words += shlex.split(FEW[name]) if options.few else []
    # Side by side no process may take most of a GPU's memory when it starts.
    shared = {LOCK: str(options.out / "lock"), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    environment = os.environ | (shared if options.together > 1 else {})
    with (options.out / f"{name}.txt").open("w") as log:
        try:
            done = subprocess.run(
                words, stdout=log, stderr=subprocess.STDOUT, timeout=seconds, env=environment
            )
        except subprocess.TimeoutExpired:
            return f"not done within {seconds:.0f} s"
    took = f"{time.monotonic() - began:.0f} s"
    return f"done in {took}" if done.returncode == 0 else f"failed after {took}"


if __name__ == "__main__":
    said = run(tyro.cli(Options, description=__doc__)).values()
    sys.exit(0 if all(word.startswith("done") for word in said) else 1)
