"""Updates per second, compile seconds and memory of learning at every step.

`python -m benchmarks.streaming`. One RTU predicts a stream of trace conditioning that is there
already, so that learning alone is timed: by TD(λ) with RTRL, its twin with TBPTT(1) and windows
TBPTT(T). Ratios are to TBPTT(1). A second table has streams of growing length: time for each step
and XLA's scratch memory must not grow.
"""

from dataclasses import dataclass, field

import jax
import tyro

import agents
import zoo
from agents.algorithms.streaming_td import Learner, Memory, stream_of
from benchmarks._command import command
from benchmarks._measure import QUICK, Budget, Output, Row, compete, heading, tree_bytes


@dataclass(frozen=True)
class Options:
    """Sizes and output."""

    memory: str = "rtu"
    """Name of the cell."""
    hidden: int = 20
    """Recurrent units."""
    steps: int = 5000
    """Steps of the stream on which gradients are compared."""
    lengths: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    """Lengths of streams on which time and memory for each step are compared."""
    windows: tuple[int, ...] = (5, 20)
    """Lengths of TBPTT's windows, besides 1."""
    optimizers: tuple[str, ...] = ("adam", "obgd")
    """What makes the steps."""
    seconds: float = 3.0
    """Measured time per choice."""
    quick: bool = False
    """A short form with tiny sizes, for tests."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


def run(options: Options) -> dict[str, list[Row]]:
    """Measure and print.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:**

    The rows of both tables.
    """
    budget = Budget(seconds=options.seconds, compilations=1, most=400)
    hidden, steps, lengths, windows = (
        options.hidden,
        options.steps,
        options.lengths,
        options.windows,
    )
    if options.quick:
        budget, hidden, steps, lengths, windows = QUICK, 3, 20, (10, 20), (2,)
    memory = zoo.spec(options.memory, hidden=hidden)
    choices = {"RTRL": agents.RTRL()} | {f"TBPTT({t})": agents.TBPTT(t) for t in (1, *windows)}
    candidates = {
        (optimizer, name): program(memory, gradient, optimizer, steps)
        for optimizer in options.optimizers
        for name, gradient in choices.items()
    }
    results = compete({str(key): pair for key, pair in candidates.items()}, budget=budget)
    rows = [
        {
            "optimizer": optimizer,
            "gradient": name,
            "updates per second": steps / results[str((optimizer, name))].run_seconds,
            "speed relative to TBPTT(1)": results[str((optimizer, "TBPTT(1)"))].run_seconds
            / results[str((optimizer, name))].run_seconds,
            "compile s": results[str((optimizer, name))].compile_seconds,
            "temp kB": results[str((optimizer, name))].temp_bytes / 1e3,
        }
        for optimizer, name in candidates
    ]
    growing = []
    for length in lengths:
        pair = program(memory, agents.RTRL(), "adam", length)
        m = compete({"": pair}, budget=budget)[""]
        growing.append(
            {
                "steps": length,
                "microseconds per step": m.run_seconds / length * 1e6,
                "temp kB": m.temp_bytes / 1e3,
                "state kB": tree_bytes(pair[1][:2]) / 1e3,
            }
        )
    title = f"Learning at every step, {options.memory} of {hidden} units, TD(.9)"
    options.output.table(heading(title, budget=budget), rows)
    options.output.table("The same with RTRL and Adam, by the length of the stream", growing)
    options.output.save({"gradients": rows, "lengths": growing})
    return {"gradients": rows, "lengths": growing}


def program(memory: zoo.Spec, gradient, optimizer, steps: int):
    """A candidate for `compete`: learning from a stream, to the state after it."""
    td = agents.StreamingTD(
        env="trace_conditioning",
        memory=memory,
        gradient=gradient,
        optimizer=optimizer,
        rollout_length=steps,
    )
    state = jax.jit(lambda: td.init(key=jax.random.key(0)))()
    collect = jax.jit(
        lambda acting: td.actor.collect(td.chance, acting, length=steps, key=jax.random.key(1))
    )
    acting, rollout, _ = collect(state.actors.acting)

    def learn(learner: Learner, memory: Memory, stream):
        return td.learn(learner, memory, stream)[:2]

    return learn, (state.learner, state.actors.memory, stream_of(rollout, acting))


if __name__ == "__main__":
    command(run, Options, __doc__)
