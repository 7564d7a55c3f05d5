"""Updates per second of DQN from the tape and from segments of the same budget.

`python -m benchmarks.replay`. One iteration appends steps to replay and learns from it; the same
number of slots, padding included, is drawn every time. Ratios are to the tape.
"""

from dataclasses import dataclass, field
from typing import Any

import jax
import tyro

import agents
import zoo
from benchmarks._command import command
from benchmarks._measure import QUICK, Budget, Output, Row, compete, heading


@dataclass(frozen=True)
class Options:
    """Sizes and output."""

    env: str = "RepeatPreviousEasy"
    """Name of the environment."""
    memories: tuple[str, ...] = ("lru", "gru")
    """Names of cells."""
    hidden: int = 64
    """Recurrent units."""
    batch_steps: int = 1000
    """Slots of a sample."""
    tapes: tuple[int, ...] = (4,)
    """Numbers of tapes side by side, besides one."""
    segments: tuple[int, ...] = (10, 20, 50, 100)
    """Lengths of segments."""
    updates: int = 16
    """Updates of an iteration."""
    seconds: float = 6.0
    """Measured time per choice."""
    quick: bool = False
    """A short form with tiny sizes, for tests."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


def run(options: Options) -> list[Row]:
    """Measure and print.

    **Returns:**

    One row per memory and kind of sample.
    """
    budget = QUICK if options.quick else Budget(seconds=options.seconds, compilations=1)
    small = {
        "batch_steps": 8,
        "hidden": 4,
        "updates": 1,
        "tapes": (2,),
        "segments": (4,),
        "memories": ("lru",),
    }
    chosen: dict[str, Any] = {name: getattr(options, name) for name in small}
    if options.quick:
        chosen = small
    rows = [
        row for memory in chosen["memories"] for row in rows_for(memory, options, chosen, budget)
    ]
    options.output.table(heading("DQN's updates per second", budget=budget), rows)
    options.output.save({"replay": rows})
    return rows


def rows_for(memory: str, options: Options, chosen: dict[str, Any], budget: Budget) -> list[Row]:
    """The rows of one memory: the tape and all segments, in turn."""
    settings: dict[str, Any] = {
        "env": options.env,
        "memory": zoo.spec(memory, hidden=chosen["hidden"]),
        "num_envs": 8,
        "rollout_length": 8,
        "replay_steps": 8_000,
        "warm_up": 0,
        "updates": chosen["updates"],
        "batch_steps": chosen["batch_steps"],
    }
    choices = {"tape": agents.DQN(**settings)}
    choices |= {f"{n} tapes": agents.DQN(**settings, tapes=n) for n in chosen["tapes"]}
    choices |= {
        f"segments of {length}": agents.DQN(**settings, sampling="zero", segment=length)
        for length in chosen["segments"]
    }
    candidates = {}
    for name, dqn in choices.items():
        state = jax.jit(lambda key, dqn=dqn: dqn.init(key=key))(jax.random.key(0))
        act = jax.jit(dqn.iterate)
        for _ in range(0 if options.quick else 20):  # until there are whole episodes
            state, _ = act(state)
        candidates[name] = (dqn.iterate, (state,))
    results = compete(candidates, budget=budget)
    tape = results["tape"].run_seconds
    return [
        {
            "memory": memory,
            "sample": name,
            "updates per second": chosen["updates"] / m.run_seconds,
            "× the tape's speed": tape / m.run_seconds,
            "compile s": m.compile_seconds,
        }
        for name, m in results.items()
    ]


if __name__ == "__main__":
    command(run, Options, __doc__)
