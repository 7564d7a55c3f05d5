"""`python -m agents experiment`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from agents.cli.words import CompilingCommand

Name = tyro.conf.Positional[
    Annotated[str, tyro.conf.arg(metavar="[NAME]", help_behavior_hint="(default: list them)")]
]


@dataclass(frozen=True, kw_only=True)
class Experiment(CompilingCommand):
    """Repeat a comparison of the papers, or one of our own, and judge its claims.

    What is there already is not run again: the same command goes on after an interruption."""

    name: Name = ""
    """The experiment."""
    scale: str = "small"
    """How long it runs: `quick` to see that it works, `small` for two cores, `full` for as long as
    the source."""
    out: Path | None = None
    """The folder for everything about it; by default runs/experiments/NAME-SCALE."""
    variants: tuple[str, ...] = ()
    """Run these only, such as beside another process that runs others into the same folder; all
    are judged by the command without this."""

    def __call__(self, console: Console) -> None:
        from agents import experiments
        from agents.cli.tables import table

        if not self.name:
            for name, default in (("variants", ()), ("scale", "small"), ("out", None)):
                if getattr(self, name) != default:
                    raise ValueError(f"--{name} has no meaning without the name of an experiment")
            rows = table("experiments", ["name", "question", "source"], narrow=True)
            for name in experiments.names():
                experiment = experiments.load(name)
                rows.add_row(name, experiment.question, experiment.source)
            console.print(rows)
            return
        experiment = experiments.load(self.name)
        out = self.out or Path("runs/experiments") / f"{self.name}-{self.scale}"
        say = lambda text: console.print(text, soft_wrap=True, highlight=False)  # noqa: E731
        options = {"scale": self.scale, "variants": self.variants, "say": say}
        rows = experiments.run(experiment, out, **options)
        if self.variants:
            say(f"runs: {out / 'runs'}")
            return
        console.print(experiment.question, style="bold", soft_wrap=True, highlight=False)
        shown = table(None, ["claim", "verdict", "value", "95 % interval", "seeds"])
        for claim, verdict in experiments.verdicts(experiment, rows):
            ends = f"{verdict.low:.3f} to {verdict.high:.3f}"
            shown.add_row(
                claim.text, verdict.outcome, f"{verdict.value:.3f}", ends, str(verdict.seeds)
            )
        shown.columns[0].no_wrap = False
        console.print(shown)
        console.print(f"results: {out / 'results.csv'}", soft_wrap=True, highlight=False)
