"""All forms of a memory against the plain loop, in values and gradients, and across resets."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import rtrl
from zoo.proofs.forms import FORMS, RTRL_FORMS, TIME, Problem, loop
from zoo.proofs.losses import difference
from zoo.proofs.report import Check


def _check(invariant, what, got, expected, rule, limit=1e-9):
    number, where = difference(got, expected)
    if number <= limit:
        where = ""
    return Check(invariant, what, number, where, limit, rule)


def is_random(sensitivity: Any) -> bool:
    """Whether a sensitivity is drawn at random."""
    is_rank_one = lambda node: isinstance(node, rtrl.RankOne)  # noqa: E731
    return any(map(is_rank_one, jax.tree.leaves(sensitivity, is_leaf=is_rank_one)))


def values(problem: Problem, expected: Any) -> list[Check]:
    """States and outputs of every form."""
    rule = "all forms compute what a loop over `update` and `readout` does"
    out = []
    for name, form in {**FORMS, **{k: v for k, (v, _) in RTRL_FORMS.items()}}.items():
        got = problem.outcome(form)
        out.append(
            _check("forms", name, {"state": got.end, "y": got.ys},
                   {"state": expected.end, "y": expected.ys}, rule)
        )  # fmt: skip
    return out


def _gradient(outcome):
    return {"memory": outcome.memory, "inputs": outcome.xs, "state": outcome.state}


def bptt(problem: Problem) -> list[Check]:
    """Gradients of the forms without sensitivities, with a loss of the state at the end too."""
    problem = replace(problem, on_state=0.7)
    expected = _gradient(problem.outcome(loop))
    rule = "the gradient is that of autodiff through a loop over `update` and `readout`"
    return [
        _check("BPTT", name, _gradient(problem.outcome(form)), expected, rule)
        for name, form in FORMS.items()
    ]


def forward_mode(problem: Problem) -> list[Check]:
    """Gradients of the forms with sensitivities, for every segmentation."""
    # Early outputs count for nothing, so that credit has to cross several segments.
    weights = problem.weights * (np.arange(TIME) >= 4)[None, :, None]
    out, ends = [], []
    for each in (problem, replace(problem, weights=weights)):
        exact = each.outcome(loop)
        for name, (form, cuts) in RTRL_FORMS.items():
            got, promised = each.outcome(form), each.outcome(loop, cuts)
            approximate = difference(promised.memory, exact.memory)[0] > 1e-9
            expected = {
                "memory": (promised if approximate else exact).memory,
                "inputs": promised.xs,
            }
            found = {"memory": got.memory, "inputs": got.xs}
            rule = "RTRL has the gradient of BPTT, and inputs that of their own segment"
            against = "BPTT"
            if is_random(got.sensitivity) and cuts.sum() > 1:
                del expected["memory"], found["memory"]
                rule, against = "inputs have the gradient of their own segment", "BPTT in inputs"
            elif approximate:
                rule = "RTRL has the gradient of the loop that the approximation stands for"
                against = "its approximation"
            out.append(_check("RTRL", f"{name}, against {against}", found, expected, rule))
            ends.append(got.sensitivity)
    if not is_random(ends[0]):
        worst = max((difference(end, ends[0]) for end in ends[1:4]), default=(0.0, ""))
        rule = "the sensitivity at the end does not depend on the segmentation"
        out.append(Check("RTRL", "sensitivities of all segmentations", *worst, rule=rule))
    # Both weightings of the loss have one row.
    merged: dict[str, Check] = {}
    for check in out:
        known = merged.get(check.what)
        merged[check.what] = check if known is None or check.number > known.number else known
    return list(merged.values())


def resets(problem: Problem) -> list[Check]:
    """What happens where an episode begins, in every form."""
    first = TIME // 2
    later = (np.arange(TIME) >= first)[None, :, None]
    weights = problem.weights * later
    begin = np.broadcast_to(np.arange(TIME) == first, problem.begin.shape)
    one = replace(problem, begin=begin, weights=weights)
    poisoned = jax.tree.map(_poison, problem.carry)
    before = jnp.where(later, problem.xs, 3 - problem.xs)
    turned = jax.tree.map(lambda h: h[::-1], problem.carry)
    nan = jnp.where(later, problem.xs, jnp.nan)
    at_start = np.broadcast_to(np.arange(TIME) == 0, problem.begin.shape)
    clean = replace(problem, begin=at_start)
    worst: dict[str, tuple[float, str]] = {}

    def keep(what, name, got, expected):
        number, where = difference(got, expected)
        worst[what] = max(worst.get(what, (0.0, "")), (number, f"{name}{where}"))

    fresh, crossing, survives = (
        "another past before a begin",
        "gradients across a begin",
        "NaNs before a begin",
    )
    forms = {**FORMS, **{k: v for k, (v, _) in RTRL_FORMS.items()}}
    random = is_random(problem.carry[1])
    for name, form in forms.items():
        expected = one.outcome(form)
        other = replace(one, carry=turned, xs=before).outcome(form)

        def rest(outcome):
            # A sensitivity's random signs go on over a begin.
            kept = () if random else outcome.sensitivity
            return {"y": outcome.ys[:, first:], "state": outcome.end, "sensitivity": kept}

        keep(fresh, name, rest(other), rest(expected))
        if not random or form is not forms["rtrl_step"]:
            keep(fresh, name, other.memory, expected.memory)
        crossed = (expected.xs[:, :first], expected.state)
        keep(crossing, name, crossed, jax.tree.map(jnp.zeros_like, crossed))
        keep(
            survives, name, rest(replace(one, carry=poisoned, xs=nan).outcome(form)), rest(expected)
        )
        got, expected = replace(clean, carry=poisoned).outcome(form), clean.outcome(form)
        keep(survives, name, got._replace(state=()), expected._replace(state=()))
    rules = {
        fresh: "after a begin nothing depends on what was before",
        crossing: "no gradient crosses a begin",
        survives: "a NaN before a begin does not survive it",
    }
    limits = {fresh: 1e-9, crossing: 0.0, survives: 1e-9}
    return [
        Check("resets", what, number, "" if number <= limits[what] else where, limits[what],
              rules[what])
        for what, (number, where) in worst.items()
    ]  # fmt: skip


def _poison(leaf):
    return jnp.full_like(leaf, jnp.nan) if jnp.issubdtype(leaf.dtype, jnp.inexact) else leaf
