"""What happens where an episode begins, in every form of a memory."""

from dataclasses import replace

import equinox as eqx
import jax
import numpy as np

from zoo.proofs.equalities import is_random
from zoo.proofs.forms import RTRL_STEP, STEPPER, TIME, Problem, all_forms
from zoo.proofs.losses import difference
from zoo.proofs.report import Check


def resets(problem: Problem) -> list[Check]:
    """That an episode is free of the past: in values, in gradients, and where that is a NaN."""
    first = 4  # where a segment begins, or inside one
    later = (np.arange(TIME) >= first)[None, :, None]
    weights = problem.weights * later
    begin = np.broadcast_to(np.arange(TIME) == first, problem.begin.shape)
    one = replace(problem, begin=begin, weights=weights)
    poisoned = _poisoned(problem.carry, np.nan)
    before = np.where(later, problem.xs, 3 - problem.xs)
    turned = jax.tree.map(lambda h: h[::-1], problem.carry)
    nan = np.where(later, problem.xs, np.nan)
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
    random = is_random(problem.carry[1])
    for name, form in all_forms(problem.memory).items():
        expected = one.outcome(form)
        other = replace(one, carry=turned, xs=before).outcome(form)

        def rest(outcome):
            # A sensitivity's random signs go on over a begin.
            kept = () if random else outcome.sensitivity
            return {"y": outcome.ys[:, first:], "state": outcome.end, "sensitivity": kept}

        keep(fresh, name, rest(other), rest(expected))
        after_nan = replace(one, carry=poisoned, xs=nan).outcome(form)
        keep(survives, name, rest(after_nan), rest(expected))
        if form is STEPPER:  # which is for acting: it owes no gradient
            continue
        if not random or form is not RTRL_STEP:
            keep(fresh, name, other.memory, expected.memory)
        crossed = (expected.xs[:, :first], expected.state)
        keep(crossing, name, crossed, jax.tree.map(np.zeros_like, crossed))
        expected = clean.outcome(form)._replace(state=())
        for bad in (np.nan, np.inf):
            at_first = replace(clean, carry=_poisoned(problem.carry, bad)).outcome(form)
            keep(survives, name, at_first._replace(state=()), expected)
    rules = {
        fresh: "after a begin nothing depends on what was before",
        crossing: "no gradient crosses a begin",
        survives: "what is not finite before a begin does not survive it",
    }
    limits = {fresh: 1e-9, crossing: 0.0, survives: 1e-9}
    return [
        Check("resets", what, number, "" if number <= limits[what] else where, limits[what],
              rules[what])
        for what, (number, where) in worst.items()
    ]  # fmt: skip


def _poisoned(tree, bad):
    floats, rest = eqx.partition(tree, eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(lambda leaf: np.full_like(leaf, bad), floats), rest)
