"""The command line, `python -m agents`: train, evaluate, play, compare, analyze, envs, cells."""

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import zoo
from agents import envs
from agents.analysis import episode_sensitivities, value_memory_length
from agents.analysis_plots import draw_sensitivity
from agents.cli import Count, Switch, Train, build_algorithm
from agents.logs import TrainingInterrupted
from agents.play import Play
from agents.plots import confidence_band, default_metric, learning_curve, read_scalars, smooth
from agents.policy import policy_of
from agents.ppo import PPO
from agents.rollout import Actor
from agents.training import TrainingDiverged, evaluation_keys, load_run, train

_KINDS = (
    (zoo.AbstractTimeInvariantCell, "linear, constant"),
    (zoo.AbstractLinearCell, "linear, input-dependent"),
    (zoo.AbstractDiagonalCell, "nonlinear, diagonal"),
    (zoo.AbstractDenseCell, "nonlinear, dense"),
    (zoo.AbstractMemory, "of its own"),
)


@dataclass(frozen=True)
class Evaluate:
    """Play episodes with the trained agents of a run."""

    run: Path
    """The run's folder."""
    episodes: Count = 256
    """Episodes for each seed."""
    seed: int = 0
    """Root of the randomness."""
    greedy: Switch = False
    """Take the most probable action (the default)."""
    sample: Switch = False
    """Draw actions from the policy instead."""

    def __call__(self, console: Console) -> None:
        """Prints a table of returns."""
        if self.greedy and self.sample:
            raise ValueError("--greedy and --sample exclude each other")
        if self.episodes < 1:
            raise ValueError(f"--episodes (={self.episodes}) must be at least 1")
        algorithm, state, config = load_run(self.run, PPO.from_dict)

        def play_one(state: Any, key: Any) -> dict:
            return algorithm.play(state, key=key, episodes=self.episodes, greedy=not self.sample)

        keys = evaluation_keys(self.seed, 0, config["seeds"])
        played = jax.jit(jax.vmap(play_one, axis_name="seed"))(state, keys)
        returns, lengths = (np.asarray(played[name], float) for name in ("returns", "lengths"))
        table = _table(
            f"{algorithm.env}: return of {self.episodes} episodes",
            ["seed", "mean", "std. error", "min", "max", "mean length"],
        )
        for seed, (values, steps) in enumerate(zip(returns, lengths, strict=True)):
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            numbers = (values.mean(), error, values.min(), values.max(), steps.mean())
            table.add_row(str(seed), *(f"{x:.3f}" for x in numbers))
        means = returns.mean(axis=1)
        table.add_section()
        table.add_row(
            "all",
            _interval(means),
            "",
            *(f"{x:.3f}" for x in (returns.min(), returns.max(), lengths.mean())),
        )
        console.print(table)


@dataclass(frozen=True)
class Compare:
    """Draw several runs into one figure, and print their final values."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """The runs' folders."""
    out: Path = Path("comparison.png")
    """The figure to write."""
    metric: str | None = None
    """What to compare; the evaluation's return if all runs have it, else the rollouts'."""
    smoothing: Count = 1
    """Average over so many points of each seed."""
    labels: tuple[str, ...] = ()
    """Names of the runs in the figure; their folders' by default."""
    title: str | None = None
    """Written above the figure."""

    def __call__(self, console: Console) -> None:
        """Writes the figure and prints the table."""
        labels = self.labels or _labels(self.runs)
        if len(set(labels)) != len(self.runs):
            raise ValueError(
                f"--labels ({', '.join(labels)}) must be one different name for each of the "
                f"{len(self.runs)} runs"
            )
        runs = dict(zip(labels, self.runs, strict=True))
        scalars = {label: read_scalars(folder) for label, folder in runs.items()}
        metric = self.metric or default_metric(list(scalars.values()))
        table = _table(f"final {metric}", ["run", "seeds", "steps", "mean", "min", "max"])
        for label, run in scalars.items():
            steps, values = run.curve(metric)
            final = smooth(values, self.smoothing)[-1]
            low, high = f"{np.nanmin(final):.3f}", f"{np.nanmax(final):.3f}"
            table.add_row(label, str(len(final)), f"{steps[-1]:,}", _interval(final), low, high)
        options = {"metric": metric, "smoothing": self.smoothing, "title": self.title}
        learning_curve(runs, self.out, **options)
        console.print(table)
        console.print(f"figure: {self.out}", soft_wrap=True, highlight=False)


@dataclass(frozen=True)
class Analyze:
    """Draw how far back the observations lie that the agents' value of an episode's end depends
    on."""

    run: tyro.conf.Positional[Path]
    """The run's folder."""
    out: Path | None = None
    """The figure to write; sensitivity.png in the run's folder by default."""
    episodes: Count = 16
    """Episodes for each seed."""
    max_steps: Count | None = None
    """Where episodes are cut; the environment's own limit by default."""
    fraction: float = 0.9
    """Of the sensitivity, that the value memory has to hold."""
    reward_memory_length: Count | None = None
    """How many of the newest observations the reward depends on, to be drawn as well."""
    seed: int = 0
    """Root of the randomness."""

    def __call__(self, console: Console) -> None:
        """Writes the figure and prints the value memory length of each seed."""
        algorithm, state, config = load_run(self.run, PPO.from_dict)
        keys = evaluation_keys(self.seed, 0, config["seeds"])
        table = _table(
            f"{algorithm.env}: value memory length for {self.fraction:.0%} of the sensitivity",
            ["seed", "observations", "mean episode length"],
        )
        found = {}
        for seed, key in enumerate(keys):
            policy = policy_of(state, seed)
            found[f"seed {seed}"] = sensitivities = episode_sensitivities(
                Actor(*algorithm.environment, policy.observation_statistics),
                policy.network,
                episodes=self.episodes,
                max_steps=self.max_steps,
                key=key,
            )
            length = value_memory_length(sensitivities, self.fraction)
            steps = np.mean([len(values) for values in sensitivities])
            table.add_row(str(seed), str(length), f"{steps:.1f}")
        out = self.run / "sensitivity.png" if self.out is None else self.out
        draw_sensitivity(
            found,
            out,
            reward_memory_length=self.reward_memory_length,
            fraction=self.fraction,
            title=algorithm.env,
        )
        console.print(table)
        console.print(f"figure: {out}", soft_wrap=True, highlight=False)


@dataclass(frozen=True)
class Envs:
    """List the environments."""

    filter: str = ""
    """Only those whose name contains this text."""

    def __call__(self, console: Console) -> None:
        """Prints a table."""
        found = [name for name in envs.names() if self.filter.lower() in name.lower()]
        if not found:
            raise ValueError(f"no environment's name contains {self.filter!r}")
        table = _table(None, ["environment", "observation", "action", "steps at most"])
        for name in found:
            table.add_row(name, *_describe(name))
        console.print(table)


@dataclass(frozen=True)
class Cells:
    """List the memory cells, their kind and their options."""

    def __call__(self, console: Console) -> None:
        """Prints a table."""
        table = _table(None, ["cell", "recurrence", "state", "options"])
        for name in zoo.names():
            kind, size = eqx.filter_eval_shape(_look, name)  # draws no parameters
            options = ", ".join(f"{key}={value!r}" for key, value in zoo.options(name).items())
            table.add_row(name, kind, f"{size} per unit", options or "–")
        console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    **Arguments:**

    - `arguments`: the words after the program's name; the process's by default.

    **Returns:**

    The exit code: 0; 2 after an error of the user's, which is one message on stderr; 130 after
    Ctrl-C and 143 after SIGTERM, once a checkpoint is written. Errors in the program itself are
    raised as they are; so are all with `TRACE_ZOO_TRACEBACK=1` in the environment.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    errors = Console(stderr=True, soft_wrap=True)
    command = tyro.cli(
        Train | Evaluate | Play | Compare | Analyze | Envs | Cells,  # pyright: ignore
        prog="python -m agents",
        description="Agents with memory: train them, evaluate them, compare them.",
        args=words,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
    )
    try:
        if isinstance(command, Train):
            run_training(command, Console())
        else:
            command(Console())
    except TrainingInterrupted as stopped:
        again = shlex.join(["python", "-m", "agents", *(w for w in words if w != "--resume")])
        errors.print(f"{stopped}\n{again} --resume", markup=False, highlight=False)
        return 128 + stopped.number
    except KeyboardInterrupt:
        errors.print("stopped at once; the last checkpoint is kept")
        return 130
    except (ValueError, OSError, ImportError, TrainingDiverged) as error:
        if os.environ.get("TRACE_ZOO_TRACEBACK"):
            raise
        errors.print(str(error), style="bold red", markup=False, highlight=False)
        return 2
    return 0


def run_training(options: Train, console: Console) -> None:
    """Trains as the options say, and prints where the results are.

    **Arguments:**

    - `options`: as parsed.
    - `console`: where to print.
    """
    run = options.running
    shown: Any = {"auto": True, "none": False}.get(run.progress, run.progress)
    result = train(
        build_algorithm(options),
        steps=run.steps,
        seeds=run.seeds,
        seed=run.seed,
        out=run.out,
        resume=run.resume,
        evaluate_every=run.evaluate_every,
        evaluation_episodes=run.evaluation_episodes,
        checkpoint_every=run.checkpoint_every,
        progress=shown,
    )
    name = "evaluation_return" if "evaluation_return" in result.metrics else "return"
    values = result.metrics.get(name, np.array([np.nan]))
    console.print(
        f"{result.folder}: {name} {_interval(values)} after {result.env_steps:,} steps of each "
        f"seed (seeds: {run.seeds}); {result.steps_per_second:,.0f} steps/s, compiled in "
        f"{result.compile_seconds:.1f} s",
        highlight=False,
    )


def _interval(values: np.ndarray) -> str:
    """Mean and half width of the 95 % confidence interval over seeds."""
    mean, half = confidence_band(np.asarray(values, float)[None])
    return f"{mean[0]:.3f}" + ("" if np.isnan(half[0]) else f" ± {half[0]:.3f}")


def _labels(runs: Sequence[Path]) -> tuple[str, ...]:
    names = tuple(run.resolve().name for run in runs)
    return names if len(set(names)) == len(names) else tuple(str(run) for run in runs)


def _table(title: str | None, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=number == 0)
    return table


def _describe(name: str) -> tuple[str, str, str]:
    try:
        env, params = envs.make(name)
    except ModuleNotFoundError as error:  # an optional package, and the line that installs it
        return escape(str(error)), "–", "–"
    spaces = env.observation_space(params), env.action_space(params)
    return _space(spaces[0]), _space(spaces[1]), str(envs.episode_steps(env, params))


def _space(space: Any) -> str:
    kind, count = type(space).__name__, getattr(space, "n", None)
    return f"{kind}({count})" if count is not None else f"{kind}{getattr(space, 'shape', '')}"


def _look(name: str) -> tuple[str, int]:
    """A cell's kind, and the numbers in its state for each unit."""
    cell = zoo.get(name, hidden=8)
    kind = next(words for kind, words in _KINDS if isinstance(cell, kind))
    return kind if cell.state_size else "none", cell.state_size // 8


if __name__ == "__main__":
    sys.exit(main())
