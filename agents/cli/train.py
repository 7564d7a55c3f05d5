"""`python -m agents train`."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console

from agents.cli.words import CompilingCommand, Count, Seed, Switch

if TYPE_CHECKING:
    from agents.agent import AbstractAgent

SUMMARY = "Train an agent and leave a folder with its curves, logs and checkpoint."


@dataclass(frozen=True)
class RunOptions:
    """How long, how often and where to."""

    out: Path
    """Folder for curves, logs and the checkpoint: new or empty, or with --resume that of the run
    to go on with."""
    steps: Count = 1_000_000
    """Environment steps for each seed, such as 1e6; with --resume it may be larger than before."""
    seeds: Count = 1
    """Seeds trained side by side."""
    seed: Seed = 0
    """Root of all randomness."""
    resume: Switch = False
    """Go on from the checkpoint in --out."""
    drop_scalars: Switch = False
    """With --resume: leave rows of scalars.csv blank that are missing or damaged."""
    evaluate_every: Count | None = None
    """Iterations between evaluations; about 20 evaluations by default; 0 for none."""
    evaluation_episodes: Count = 64
    """Episodes of each evaluation, for each seed."""
    checkpoint_every: Count | None = None
    """Iterations between checkpoints; about 20 checkpoints by default."""
    checkpoints: Literal["plain", "sharded"] = "plain"
    """One file, or a folder to which every process writes its part while training goes on, which
    needs orbax-checkpoint; either can be resumed as the other."""
    log_every: Count | None = None
    """Iterations between rows of the metrics, besides those of evaluations; by default so many that
    there are 10,000 at most."""
    devices: Count | Literal["all"] | None = None
    """Devices to split the run over, all for those that there are: the seeds if they can be
    divided, else the environments."""
    processes: Count | Literal["auto"] | None = None
    """Processes that share the run, each started with the same words; auto for what SLURM, Open MPI
    or Kubernetes say."""
    coordinator: str | None = None
    """With --processes: host:port at which the first of them listens."""
    process: Count | None = None
    """With --processes: the number of this one, from 0."""
    progress: Literal["auto", "bar", "lines", "none"] = "auto"
    """How to report progress; auto is a bar on a terminal and lines elsewhere."""
    track: Literal["wandb", "trackio"] | None = None
    """Send the means over seeds to a tracker too, as a run with the folder's name."""
    track_project: str | None = None
    """The project of that run; trace-zoo by default."""


def train_command(algorithm: str, preset: str | None = None) -> type:
    """Make the command that trains an algorithm, a dataclass for tyro, called with a console.

    A preset of the algorithm's gives its options other defaults.

    **Raises:**

    `ValueError` for an algorithm or a preset that is not there.
    """
    from agents.algorithms import agent_class, names
    from agents.cli.options import options_of

    kind = agent_class(algorithm)
    fields: list[Any] = [
        (
            "algorithm",
            Annotated[
                Literal[names()],  # pyright: ignore[reportInvalidTypeForm]
                tyro.conf.arg(help="What learns; each has options of its own."),
            ],
            "ppo",
        ),
        (
            "preset",
            Annotated[
                str | None,
                tyro.conf.arg(
                    help="Settings to start from, for each of which another may be given; "
                    f"{kind.__name__} has: {', '.join(kind.presets()) or 'none'}."
                ),
            ],
            None,
        ),
        ("agent", options_of(kind, preset)),
        ("running", RunOptions),
    ]
    if any(f.name == "anneal_steps" for f in dataclasses.fields(kind)):
        words = (
            "Let the learning rate fall linearly to zero over --steps, which then cannot change on "
            "resuming."
        )
        fields.append(("anneal", Annotated[bool, tyro.conf.arg(help=words)], False))

    def run(self: Any, console: Console) -> None:
        _run(kind, self, console)

    made = dataclasses.make_dataclass(
        "Train",
        fields,
        bases=(CompilingCommand,),
        namespace={"__call__": run},
        frozen=True,
        kw_only=True,
    )
    made.__doc__ = SUMMARY
    return made


def untold_train_command() -> type:
    """Make the command without an algorithm's options, for the list of all commands."""
    made = dataclasses.make_dataclass("Train", (), bases=(CompilingCommand,), frozen=True)
    made.__doc__ = SUMMARY
    return made


def agent_of(kind: "type[AbstractAgent]", command: Any) -> "AbstractAgent":
    """Make the agent of a command that `train_command` made, and that was parsed.

    **Raises:**

    `ValueError` naming the setting that is wrong.
    """
    from agents.cli.options import make_agent

    changed = {}
    if getattr(command, "anneal", False):
        if command.agent.anneal_steps is not None:
            raise ValueError("--anneal and --anneal-steps both say how long: give one of them")
        changed["anneal_steps"] = command.running.steps
    return make_agent(kind, command.agent, **changed)


def _run(kind: "type[AbstractAgent]", command: Any, console: Console) -> None:

    from agents.cli.tables import interval
    from agents.running.processes import writes
    from agents.running.train import train

    run: RunOptions = command.running
    shown: Any = {"auto": True, "none": False}.get(run.progress, run.progress)
    result = train(
        agent_of(kind, command),
        steps=run.steps,
        seeds=run.seeds,
        seed=run.seed,
        out=run.out,
        resume=run.resume,
        drop_scalars=run.drop_scalars,
        evaluate_every=run.evaluate_every,
        evaluation_episodes=run.evaluation_episodes,
        checkpoint_every=run.checkpoint_every,
        checkpoints=run.checkpoints,
        log_every=run.log_every,
        devices=run.devices,
        progress=shown,
        track=run.track,
        track_project=run.track_project,
    )
    if not writes():
        return
    name = "evaluation_return" if "evaluation_return" in result.metrics else "return"
    values = result.metrics.get(name)
    reached = "–" if values is None else interval(values)
    console.print(
        f"{result.folder}: {name} {reached} after {result.env_steps:,} steps of each "
        f"seed (seeds: {run.seeds}); {result.steps_per_second:,.0f} steps/s, compiled in "
        f"{result.compile_seconds:.1f} s",
        soft_wrap=True,
        highlight=False,
    )
