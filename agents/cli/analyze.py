"""`python -m agents analyze`."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from agents.cli.runs import Run
from agents.cli.words import CompilingCommand, Count, Seed, check_picture


@dataclass(frozen=True, kw_only=True)
class Analyze(CompilingCommand):
    """Draw how far back the observations lie that the agents' value of an episode's end depends
    on."""

    run: Run
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
    seed: Seed = 0
    """Root of the randomness."""

    def __call__(self, console: Console) -> None:
        import numpy as np

        from agents.analysis import draw_sensitivity, episode_sensitivities, value_memory_length
        from agents.cli.tables import table
        from agents.running.load import load_run, policy_of
        from agents.running.programs import evaluation_keys
        from zoo.annotations import Fraction, fitted
        from zoo.parts.checks import check_sizes

        if self.out is not None:
            check_picture(self.out)
        if self.reward_memory_length is not None:
            check_sizes(reward_memory_length=self.reward_memory_length)
        fitted("fraction", self.fraction, Fraction)
        agent, state, config = load_run(self.run)
        keys = evaluation_keys(self.seed, 0, config["seeds"])
        rows = table(
            f"{agent.env_name}: value memory length for {self.fraction:.0%} of the sensitivity",
            ["seed", "observations", "mean episode length"],
        )
        found = {}
        for seed, key in enumerate(keys):
            try:
                sensitivities = episode_sensitivities(
                    agent.actor,
                    policy_of(agent, state, seed),
                    episodes=self.episodes,
                    max_steps=self.max_steps,
                    key=key,
                )
            except TypeError as error:  # an agent that has no value
                raise ValueError(f"{self.run} ({type(agent).__name__}): {error}") from error
            found[f"seed {seed}"] = sensitivities
            length = value_memory_length(sensitivities, self.fraction)
            steps = np.mean([len(values) for values in sensitivities])
            rows.add_row(str(seed), str(length), f"{steps:.1f}")
        out = self.run / "sensitivity.png" if self.out is None else self.out
        draw_sensitivity(
            found,
            out,
            reward_memory_length=self.reward_memory_length,
            fraction=self.fraction,
            title=agent.env_name,
        )
        console.print(rows)
        console.print(f"figure: {out}", soft_wrap=True, highlight=False)
