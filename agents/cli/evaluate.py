"""`python -m agents evaluate`."""

from dataclasses import dataclass

from rich.console import Console

from agents.cli.runs import Run
from agents.cli.words import CompilingCommand, Count, Seed, Switch


@dataclass(frozen=True, kw_only=True)
class Evaluate(CompilingCommand):
    """Play episodes with the trained agents of a run."""

    run: Run
    """The run's folder."""
    episodes: Count = 256
    """Episodes for each seed."""
    seed: Seed = 0
    """Root of the randomness."""
    greedy: Switch = False
    """Take the most probable action (the default)."""
    sample: Switch = False
    """Draw actions from the policy instead."""

    def __call__(self, console: Console) -> None:
        if self.greedy and self.sample:
            raise ValueError("--greedy and --sample exclude each other")
        if self.episodes < 1:
            raise ValueError(f"--episodes (={self.episodes}) must be at least 1")
        import jax
        import numpy as np

        from agents.cli.tables import interval, table
        from agents.running.load import load_run
        from agents.running.memory import telling_what_to_lower
        from agents.running.programs import evaluate_seeds, evaluation_keys

        agent, state, config = load_run(self.run)
        with telling_what_to_lower(None, episodes=self.episodes):
            play = jax.jit(evaluate_seeds(agent, self.episodes, greedy=not self.sample))
            played = play(state.learner, evaluation_keys(self.seed, 0, config["seeds"]))
            returns, lengths = (np.asarray(played[name], float) for name in ("returns", "lengths"))
        rows = table(
            f"{agent.env_name}: return of {self.episodes} episodes",
            ["seed", "mean", "std. error", "min", "max", "mean length"],
        )
        for seed, (values, steps) in enumerate(zip(returns, lengths, strict=True)):
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            numbers = (values.mean(), error, values.min(), values.max(), steps.mean())
            rows.add_row(str(seed), *(f"{x:.3f}" for x in numbers))
        means = returns.mean(axis=1)
        rows.add_section()
        rows.add_row(
            "all",
            interval(means),
            "",
            *(f"{x:.3f}" for x in (returns.min(), returns.max(), lengths.mean())),
        )
        console.print(rows)
