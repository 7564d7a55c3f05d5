"""Tables of the experiments' pages, from the results that are kept in the repository."""

import functools
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from agents import experiments
from agents.cli.tables import with_ends
from agents.running.statistics import spread
from docs._helpers import picture

RESULTS = Path(__file__).parent / "assets" / "experiments"
_MOST_BESIDE = 4  # parts of a figure in a line


def _rows(name):
    return experiments.read_rows(RESULTS / f"{name}.csv")


@functools.cache  # three pages show them, and their intervals take a moment each
def _verdicts(name):
    return experiments.verdicts(experiments.load(name), _rows(name))


def _was_run(name) -> bool:
    return (RESULTS / f"{name}.csv").exists()


def overview() -> str:
    """A row for each experiment, those that were run first: how its claims came out."""
    lines = ["| experiment | question | source | claims |", "|---|---|---|---|"]
    for name in sorted(experiments.names(), key=lambda name: (not _was_run(name), name)):
        experiment, link, counted = experiments.load(name), f"`{name}`", "not run here yet"
        if _was_run(name):
            link = f"[{name}]({name}.html)"
            found = [v.outcome for _, v in _verdicts(name)]
            counted = ", ".join(f"{found.count(x)} {x}" for x in dict.fromkeys(found))
        lines.append(f"| {link} | {experiment.question} | {experiment.source} | {counted} |")
    return "\n".join(lines)


def headlines() -> str:
    """The first claim of each experiment that was run, with what came of it."""
    lines = ["| claim | came out | |", "|---|---|---|"]
    for name in filter(_was_run, experiments.names()):
        experiment = experiments.load(name)
        claim, verdict = _verdicts(name)[0]
        source = experiment.source.partition(",")[0]
        link = f"[{source}](experiments/{name}.html)"
        lines.append(f"| {claim.text} | {verdict.outcome} | {link} |")
    return "\n".join(lines)


def page(name: str) -> str:
    """What is compared, the verdicts, and the scores of every variant."""
    experiment, rows = experiments.load(name), _rows(name)
    steps, seeds = max(row.steps for row in rows), 1 + max(row.seed for row in rows)
    costs = experiment.kind == "cost"
    size = f"{seeds} {'measurements' if costs else 'seeds'} of {steps:,} steps"
    lines = [
        f"**{experiment.question}** {experiment.source}. Here {size}.",
        "",
        experiment.differs,
        "",
        "| claim | verdict | value | 95 % interval |",
        "|---|---|---|---|",
    ]
    for claim, verdict in _verdicts(name):
        ends = f"{verdict.low:.3f} to {verdict.high:.3f}"
        lines.append(f"| {claim.text} | **{verdict.outcome}** | {verdict.value:.3f} | {ends} |")
    over = f"{experiment.metric}, mean over measurements" if costs else "Mean over seeds"
    lines += ["", f"{over}, with the 95 % interval by Student's t:", ""]
    environments = list(experiment.environments)
    tuned = any(row.settings for row in rows)
    head = ["variant", *["tuned"] * tuned, "measure", *environments]
    lines += [_line(head), _line(["---"] * len(head))]
    for variant in experiment.variants:
        own = [row for row in rows if row.variant == variant]
        for measure in (experiment.measure,) if costs or experiment.probe else ("final", "area"):
            cells = [_cell(own, measure, environment) for environment in environments]
            settings = [own[0].settings] * tuned
            lines.append(_line([variant, *settings, measure, *cells]))
    return "\n".join(lines)


def figure(name: str) -> str:
    """Every seed as a dot, and the mean with its interval: a part for each environment.

    Where the experiment says over which axis, means and intervals are lines over it."""
    experiment, rows = experiments.load(name), _rows(name)
    if experiment.lines:
        return _lines(experiment, rows)
    variants, environments = list(experiment.variants), list(experiment.environments)
    lines = -(-len(environments) // _MOST_BESIDE)
    columns = -(-len(environments) // lines)
    size = (7, (0.6 + 0.27 * len(variants)) * lines)
    fig, parts = plt.subplots(lines, columns, figsize=size, sharey=True, squeeze=False)
    for axes in parts.flat[len(environments) :]:
        axes.remove()
    for axes, environment in zip(parts.flat, environments, strict=False):
        for place, variant in enumerate(variants):
            own = _scores(experiment, rows, variant, environment)
            mean, low, high = (x[0] for x in spread(np.array([own])))
            axes.plot(own, [place] * len(own), "o", color="C0", alpha=0.35, markersize=4)
            axes.plot([low, high], [place] * 2, color="C1")
            axes.plot(mean, place, "|", color="C1", markersize=12, markeredgewidth=2)
        axes.set_title(_in_lines(environment, 72 // columns), fontsize=10)
        axes.set_xlabel(f"{experiment.metric}, {experiment.measure}")
        axes.set_yticks(range(len(variants)), variants)
    parts[0][0].set_ylim(len(variants) - 0.4, -0.6)
    return picture(fig, f"Scores of every variant of {name}: seeds, mean and interval.")


def _in_lines(name: str, width: int) -> str:
    """A name of words with a capital each, in lines of so many characters where it can be."""
    lines = [""]
    for word in re.findall(r"[A-Z]*[^A-Z]*", name):
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += word
    return "\n".join(lines)


def _lines(experiment, rows) -> str:
    """Means with their intervals over an axis: a part for each environment."""
    labels, lines = list(experiment.environments), experiment.lines
    fig, parts = plt.subplots(1, len(labels), figsize=(7, 3), sharey=True, squeeze=False)
    for axes, environment in zip(parts[0], labels, strict=True):
        for label, variants in lines.of.items():
            drawn = [
                [x[0] for x in spread(np.array([_scores(experiment, rows, variant, environment)]))]
                for variant in variants.values()
            ]
            means, low, high = np.array(drawn).T
            [curve] = axes.plot(list(variants), means, "o-", label=label, markersize=4)
            axes.fill_between(list(variants), low, high, color=curve.get_color(), alpha=0.2)
        ticks = sorted({x for variants in lines.of.values() for x in variants})
        axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
        axes.minorticks_off()
        axes.set_yscale("log" if lines.log else "linear")
        axes.set_title(environment, fontsize=10)
        axes.set_xlabel(lines.axis)
    parts[0][0].set_ylabel(experiment.metric)
    parts[0][-1].legend(fontsize=8)
    return picture(
        fig, f"{experiment.metric}, {experiment.measure}, over {lines.axis}: mean and interval."
    )


def _scores(experiment, rows, variant, environment) -> list[float]:
    return [
        getattr(row, experiment.measure)
        for row in rows
        if (row.variant, row.environment) == (variant, environment)
    ]


def _line(cells) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _cell(rows, measure, environment) -> str:
    values = np.array([[getattr(r, measure) for r in rows if r.environment == environment]])
    if np.isnan(values).any():
        return "diverged"
    return with_ends(*(x[0] for x in spread(values)))
