"""Environment steps per second and compile seconds of PPO, for each choice of gradient.

`python -m benchmarks.ppo`. One iteration collects a rollout and learns from it; all choices are
timed in turn, in one process. Ratios are to BPTT. Behind an encoder RTRL comes with exact credit
for the encoder too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import tyro

import agents
import zoo
from benchmarks._command import check_names, command
from benchmarks._measure import QUICK, Budget, Output, Row, compete, heading

CHOICES: dict[str, agents.TBPTT | agents.RTRL | agents.BPTT] = {
    "BPTT": agents.BPTT(),
    "TBPTT(8)": agents.TBPTT(8),
    "RTRL(8)": agents.RTRL(8),
    "RTRL(8), bfloat16": agents.RTRL(8, storage="bfloat16"),
    "RTRL(16)": agents.RTRL(16),
    "RTRL(32)": agents.RTRL(32),
    "RTRL(8), refreshed": agents.RTRL(8, refresh="epoch"),
    "RTRL(1)": agents.RTRL(1),
}
# With `encoder_credit="exact"`: the encoder's weights are kept once for each unit and segment.
EXACT: dict[str, agents.RTRL] = {
    "RTRL(8), exact encoder": agents.RTRL(8),
    "RTRL(32), exact encoder": agents.RTRL(32),
}


@dataclass(frozen=True)
class Options:
    """Sizes and output."""

    choices: tuple[str, ...] = (*CHOICES, *EXACT)
    """Of `CHOICES`, BPTT among them always; and of `EXACT`, behind encoders."""
    env: str = "RepeatPreviousEasy"
    """Name of the environment."""
    memory: str = "rtu"
    """Name of the cell."""
    hidden: int = 96
    """Recurrent units."""
    encoder_sizes: tuple[int, ...] = (0, 64)
    """Widths of the layer in front of the memory; 0 for none."""
    num_envs: int = 64
    """Environments side by side."""
    rollout_length: int = 128
    """Steps per environment and iteration."""
    epochs: int = 4
    """Passes over a rollout."""
    minibatches: int = 4
    """Parts of a rollout in each pass."""
    seconds: float = 6.0
    """Measured time per choice."""
    quick: bool = False
    """A short form with tiny sizes, for tests."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


def run(options: Options) -> list[Row]:
    """Measure and print.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:**

    One row per encoder and choice of gradient.
    """
    check_names("choices", options.choices, (*CHOICES, *EXACT))
    budget = Budget(seconds=options.seconds, compilations=1)
    sizes: dict[str, Any] = {
        name: getattr(options, name)
        for name in ("num_envs", "rollout_length", "epochs", "minibatches")
    }
    hidden = options.hidden
    if options.quick:
        budget, hidden = QUICK, 4
        sizes = {"num_envs": 2, "rollout_length": 32, "epochs": 1, "minibatches": 2}
    memory = zoo.spec(options.memory, hidden=hidden)
    rows: list[Row] = []
    for encoder_size in options.encoder_sizes:
        settings = {"env": options.env, "memory": memory, "encoder_size": encoder_size, **sizes}
        rows += rows_for(options.choices, settings, budget)
    title = f"PPO on {options.env}, {options.memory} of {hidden} units, {sizes}"
    options.output.table(heading(title, budget=budget), rows)
    options.output.save({"ppo": rows})
    return rows


def rows_for(names: Sequence[str], settings: dict[str, Any], budget: Budget) -> list[Row]:
    """The rows of one network: BPTT and every other choice of gradient, in turn."""
    candidates = {}
    choices: list[tuple[str, Any, Any]] = [(n, g, "segment") for n, g in CHOICES.items()]
    if settings["encoder_size"]:
        choices += [(name, gradient, "exact") for name, gradient in EXACT.items()]
    for name, gradient, credit in choices:
        if name not in ("BPTT", *names):
            continue
        ppo = agents.PPO(gradient=gradient, encoder_credit=credit, **settings)
        state = jax.jit(lambda key, ppo=ppo: ppo.init(key=key))(jax.random.key(0))
        candidates[name] = (ppo.iterate, (state,))
    results = compete(candidates, budget=budget)
    steps = settings["num_envs"] * settings["rollout_length"]
    bptt = results["BPTT"].run_seconds
    return [
        {
            "encoder": settings["encoder_size"],
            "gradient": name,
            "environment steps per second": steps / m.run_seconds,
            "speed relative to BPTT": bptt / m.run_seconds,
            "compile s": m.compile_seconds,
            "temp MB": m.temp_bytes / 1e6,
        }
        for name, m in results.items()
    ]


if __name__ == "__main__":
    command(run, Options, __doc__)
