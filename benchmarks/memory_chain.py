"""Learning curves of `agents.StreamingAC` on a chain that asks at its end for its first sign.

`python -m benchmarks.memory_chain`. Several seeds of RTRL, of TBPTT(1) and of an agent without a
memory, each with parameters of its own; the numbers go to a CSV file and a picture beside it.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import agents
import zoo
from benchmarks._command import check_file, command
from benchmarks._training import train_seeds


@dataclass(frozen=True)
class Options:
    """Sizes and output."""

    length: int = 32
    """Steps from the sign to the question."""
    steps: int = 600_000
    """Steps of every seed."""
    seeds: int = 10
    """Seeds of every choice."""
    hidden: int = 16
    """Units of the memory."""
    r_max: float = 0.8
    """Largest initial modulus of the memory's eigenvalues."""
    trace_decay: float = 0.6
    """λ."""
    points: int = 40
    """Points of a curve."""
    out: Path = Path("docs/assets/memory-chain.csv")
    """The numbers; the picture is beside it."""


def run(options: Options) -> dict[str, np.ndarray]:
    """Train, and write numbers and picture.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:**

    By choice, the mean return of the episodes that ended, `[points, seeds]`.
    """
    check_file("out", options.out, ".csv")
    if not 0 < options.points <= options.steps:
        raise ValueError(f"`points` (={options.points}) must be 1 to `steps` (={options.steps}).")
    if options.steps % options.points:
        raise ValueError(
            f"`steps` (={options.steps}) must be a multiple of `points` (={options.points})."
        )
    rtu = zoo.spec("rtu", hidden=options.hidden, r_max=options.r_max)
    mlp = zoo.spec("mlp", hidden=options.hidden)
    curves = {
        "RTRL": curve(options, rtu, agents.RTRL()),
        "TBPTT(1)": curve(options, rtu, agents.TBPTT(1)),
        "no memory": curve(options, mlp, agents.TBPTT(1)),
    }
    steps = np.arange(1, options.points + 1) * (options.steps // options.points)
    with options.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["agent", "seed", *steps])
        for name, returns in curves.items():
            for seed, row in enumerate(returns.T):
                writer.writerow([name, seed, *(f"{value:.3f}" for value in row)])
    draw(options, steps, curves)
    return curves


def curve(options: Options, memory: zoo.Spec, gradient) -> np.ndarray:
    """One choice's returns, `[points, seeds]`."""
    agent = agents.StreamingAC(
        env="MemoryChain-bsuite",
        env_options={"memory_length": options.length},
        memory=memory,
        gradient=gradient,
        head_size=16,
        adaptive=True,
        trace_decay=options.trace_decay,
        rollout_length=options.steps // options.points,
    )
    reports = train_seeds(agent, options.seeds, options.points)
    return np.stack([report.episodes["return"] for report in reports])


def draw(options: Options, steps: np.ndarray, curves: dict[str, np.ndarray]) -> None:
    """The picture: a line for each seed, and a thick one for their mean."""
    fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for color, (name, returns) in zip(("C0", "C1", "C7"), curves.items(), strict=True):
        ax.plot(steps, returns, color=color, alpha=0.3, linewidth=0.8)
        ax.plot(steps, returns.mean(1), color=color, linewidth=2, label=name)
    ax.set(xlabel="steps, an update at each", ylabel="return", ylim=(-0.4, 1.05))
    ax.set_title(f"MemoryChain of {options.length} steps", fontsize=10)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    fig.savefig(options.out.with_suffix(".png"), dpi=110)
    plt.close(fig)


if __name__ == "__main__":
    command(run, Options, __doc__)
