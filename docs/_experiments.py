"""Tables of the experiments' pages, from the results that are kept in the repository."""

from pathlib import Path

import numpy as np

from agents import experiments
from agents.running.statistics import spread

RESULTS = Path(__file__).parent / "assets" / "experiments"


def _rows(name):
    return experiments.read_rows(RESULTS / f"{name}.csv")


def overview() -> str:
    """A row for each experiment: question, source, and how its claims came out."""
    lines = ["| experiment | question | source | claims |", "|---|---|---|---|"]
    for name in experiments.names():
        experiment = experiments.load(name)
        outcomes = [v.outcome for _, v in experiments.verdicts(experiment, _rows(name))]
        counted = ", ".join(
            f"{outcomes.count(x)} {x}"
            for x in ("reproduced", "not reproduced", "not settled")
            if x in outcomes
        )
        link = f"[{name}]({name}.md)"
        lines.append(f"| {link} | {experiment.question} | {experiment.source} | {counted} |")
    return "\n".join(lines)


def page(name: str) -> str:
    """What is compared, the verdicts, and the scores of every variant."""
    experiment, rows = experiments.load(name), _rows(name)
    steps, seeds = max(row.steps for row in rows), 1 + max(row.seed for row in rows)
    lines = [
        f"**{experiment.question}** {experiment.source}. Here {seeds} seeds of {steps:,} steps.",
        "",
        experiment.differs,
        "",
        "| claim | verdict | value | 95 % interval |",
        "|---|---|---|---|",
    ]
    for claim, verdict in experiments.verdicts(experiment, rows):
        ends = f"{verdict.low:.3f} to {verdict.high:.3f}"
        lines.append(f"| {claim.text} | **{verdict.outcome}** | {verdict.value:.3f} | {ends} |")
    lines += ["", "Mean over seeds, with the 95 % interval by Student's t:", ""]
    environments = list(experiment.environments)
    tuned = any(row.settings for row in rows)
    head = ["variant", *["tuned"] * tuned, "measure", *environments]
    lines += [_line(head), _line(["---"] * len(head))]
    for variant in experiment.variants:
        own = [row for row in rows if row.variant == variant]
        for measure in ("final", "area"):
            cells = [_cell(own, measure, environment) for environment in environments]
            settings = [own[0].settings] * tuned
            lines.append(_line([variant, *settings, measure, *cells]))
    return "\n".join(lines)


def _line(cells) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(rows, measure, environment) -> str:
    values = np.array([[getattr(r, measure) for r in rows if r.environment == environment]])
    mean, low, high = (x[0] for x in spread(values))
    if np.isnan(low):
        return f"{mean:.3f}"
    return f"{mean:.3f} ({low:.3f} to {high:.3f})"
