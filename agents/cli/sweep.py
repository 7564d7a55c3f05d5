"""`python -m agents sweep`: its options, and what is checked before anything begins."""

import contextlib
import dataclasses
import importlib.util
import shlex
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console

from agents.cli.sweep_status import SweepStatus
from agents.cli.words import Command, Count, KeyValues

if TYPE_CHECKING:
    from agents.sweeps.job import Job, Outcome

_PACKAGES = {"ray": "ray", "slurm": "submitit"}

GridFile = tyro.conf.Positional[
    Annotated[str, tyro.conf.arg(metavar="[FILE]", help_behavior_hint="(TOML; default: none)")]
]
Axes = tyro.conf.UseAppendAction[
    Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE,VALUE")]
]


@dataclass(frozen=True, kw_only=True)
class Sweep(Command):
    """Train an agent with every combination of some settings, each in a run of its own.

    All other options are those of `train`, for all runs. What is there already is not run again:
    the same command goes on after an interruption. `sweep status FOLDER` shows how far it is.
    """

    file: GridFile = ""
    """Settings of all runs in its table [settings], lists of values in its table [grid]."""
    grid: Axes = ()
    """A setting and its values, such as learning_rate=1e-4,3e-4; may be given several times, for
    every combination."""
    out: Path
    """The folder for all of it: the runs are in OUT/runs, what they print is in OUT/logs."""
    engine: Literal["local", "ray", "slurm", "print"] = "local"
    """Where runs are trained: in processes of this machine, by a Ray cluster or in jobs of Slurm;
    print writes the commands of `train` and runs none."""
    workers: Count | None = None
    """Runs that are trained at once; by default 1 on this machine, and elsewhere what there is
    place for."""
    engine_options: KeyValues = ()
    """An option of ray.remote, such as num_gpus=1, or of submitit, such as timeout_min=600; may be
    given several times."""
    shared: tyro.conf.Suppress[tuple[str, ...]] = ()

    def __call__(self, console: Console) -> None:
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"--workers (={self.workers}) must be at least 1")
        if self.engine_options and self.engine not in _PACKAGES:
            raise ValueError(f"--engine-options have no meaning with --engine {self.engine}")
        if self.workers is not None and self.engine == "print":
            raise ValueError(f"--workers (={self.workers}) has no meaning with --engine print")
        package = _PACKAGES.get(self.engine)
        if package is not None and importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(
                f"--engine {self.engine} needs the package {package}: "
                f"pip install 'trace-zoo[{self.engine}]'"
            )
        import jax

        # This process makes agents only to check them. On an accelerator it would take the memory
        # that the runs need.
        jax.config.update("jax_platforms", "cpu")
        from agents.cli.sweep_plan import plan
        from agents.running.folder import sole_writer
        from agents.sweeps.folder import write_list

        shared = [*(f"--import={module}" for module in self.imports), *self.shared]
        jobs = plan(Path(self.file) if self.file else None, self.grid, shared, self.out)
        remaining = [job for job, complete in jobs.items() if not complete]
        if self.engine == "print":
            with sole_writer(self.out):
                write_list(self.out, {job.name: job.words for job in jobs})
            for job in remaining:
                print(shlex.join(["python", "-m", "agents", *job.command()]))
            return
        self._train(list(jobs), remaining, console)

    def _train(self, jobs: "Sequence[Job]", remaining: "Sequence[Job]", console: Console) -> None:
        from agents.running.folder import sole_writer
        from agents.running.signals import StopRequest
        from agents.sweeps.folder import write_list
        from agents.sweeps.job import Outcome

        def say(text: str) -> None:
            console.print(text, soft_wrap=True, markup=False, highlight=False)

        problems: list[Outcome] = []
        complete = len(jobs) - len(remaining)
        with sole_writer(self.out), StopRequest() as stop:
            write_list(self.out, {job.name: job.words for job in jobs})
            say(f"{self.out}: {len(jobs)} runs" + f", {complete} complete already" * bool(complete))
            if not remaining:
                return
            outcomes = self._outcomes(remaining, lambda: stop.number is not None)
            with contextlib.closing(outcomes):
                for job, problem in outcomes:
                    complete += not problem
                    problems += [Outcome(job, problem)] * bool(problem)
                    say(f"{complete} of {len(jobs)}  {job.name}: {problem or 'complete'}")
        _judge(problems, len(jobs), complete, self.out, stop.number)

    def _outcomes(
        self, jobs: "Sequence[Job]", asked_to_stop: "Callable[[], bool]"
    ) -> "Generator[Outcome, None, None]":
        from agents.sweeps.engines import local, ray, slurm

        if self.engine == "local":
            return local.run(jobs, self.workers or 1, asked_to_stop)
        from zoo.options import parse_options

        options = parse_options(self.engine_options, "--engine-options")
        engine = {"ray": ray, "slurm": slurm}[self.engine]
        return engine.run(jobs, self.workers, options, asked_to_stop)


def parse_sweep(words: Sequence[str], prog: str) -> Sweep | SweepStatus:
    """Return the command that was typed behind `sweep`, to be called with a console.

    **Raises:**

    `SystemExit` where the words make no command, and for `--help`.
    """
    options: Any = {"config": (tyro.conf.OmitArgPrefixes,)}
    if list(words[:1]) == ["status"]:
        return tyro.cli(SweepStatus, prog=f"{prog} status", args=words[1:], **options)
    # The file stands first, or there is none: otherwise the value of an option of `train`, which is
    # not known here, would be taken for it.
    first = [""] if words and words[0].startswith("-") and not {"-h", "--help"} & {*words} else []
    parsed, rest = tyro.cli(
        Sweep, prog=prog, args=[*first, *words], return_unknown_args=True, **options
    )
    return dataclasses.replace(parsed, shared=tuple(rest))


def _judge(
    problems: "Sequence[Outcome]", runs: int, complete: int, out: Path, number: int | None
) -> None:
    """Raise what tells that not every run is complete, or return."""
    from agents.running.errors import RunsFailed, TrainingInterrupted

    if number is not None and complete < runs:
        where = f"{complete} of {runs} runs in {out} are complete, the others keep what they have."
        raise TrainingInterrupted(where, number)
    if problems:
        logs = (f"; {o.job.log}" if o.job.log.exists() else "" for o in problems)
        listed = "\n".join(
            f"  {o.job.name}: {o.problem}{log}" for o, log in zip(problems, logs, strict=True)
        )
        raise RunsFailed(
            f"{len(problems)} of {runs} runs failed; the same command tries them again:\n{listed}"
        )
