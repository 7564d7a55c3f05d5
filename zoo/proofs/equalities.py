"""All forms of a memory against the plain loop, in values and gradients, and across resets."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import numpy as np

import rtrl
from zoo.memory import PlainStepper
from zoo.proofs.forms import (
    LOOP,
    LOOP_OF_RULES,
    RTRL_FORMS,
    STEPPER,
    TIME,
    Form,
    Problem,
    forms_of,
    in_segments,
    jit,
)
from zoo.proofs.losses import along, difference, total
from zoo.proofs.promises import cells, changed, kept_dtypes
from zoo.proofs.report import Check

_SAMPLES = 400


def _check(invariant, what, got, expected, rule, limit=1e-9):
    number, where = difference(got, expected)
    if number <= limit:
        where = ""
    return Check(invariant, what, number, where, limit, rule)


def is_random(sensitivity: Any) -> bool:
    """Whether a sensitivity is drawn at random."""
    return any(map(_is_rank_one, jax.tree.leaves(sensitivity, is_leaf=_is_rank_one)))


def _is_rank_one(node):
    return isinstance(node, rtrl.RankOne)


def values(problem: Problem) -> list[Check]:
    """States and outputs of every form, and the dtypes of their carries."""
    rule = "all forms compute what a loop over `update` and `readout` does"
    expected, out, changes = problem.outcome(LOOP), [], []
    kept = {} if isinstance(problem.memory.stepper(), PlainStepper) else {"stepper": STEPPER}
    for name, form in {**forms_of(problem.memory), **kept, **RTRL_FORMS}.items():
        got = problem.outcome(form)
        out.append(
            _check("forms", name, {"state": got.end, "y": got.ys},
                   {"state": expected.end, "y": expected.ys}, rule)
        )  # fmt: skip
        start = problem.carry if form.cuts else (problem.carry[0], ())
        change = changed(start, (got.end, got.sensitivity))
        changes += [f"{name}, {change}"] if change else []
    return [kept_dtypes(problem.xs.dtype, changes), *out]


def _gradient(outcome):
    return {"memory": outcome.memory, "inputs": outcome.xs, "state": outcome.state}


def bptt(problem: Problem) -> list[Check]:
    """Gradients of the forms without sensitivities, with a loss of the state at the end too."""
    problem = replace(problem, on_state=0.7)
    expected = _gradient(problem.outcome(LOOP))
    rule = "the gradient is that of autodiff through a loop over `update` and `readout`"
    return [
        _check("BPTT", name, _gradient(problem.outcome(form)), expected, rule)
        for name, form in forms_of(problem.memory).items()
    ]


def _promise(memory) -> Form:
    """The loop with the gradient of RTRL's forms: a program more only where a rule cuts steps."""
    rules = [getattr(cell, "sensitivity", None) for _, cell in cells(memory)]
    return LOOP_OF_RULES if any(rule and rule.at_every_step for rule in rules) else LOOP


def forward_mode(problem: Problem) -> list[Check]:
    """Gradients of the forms with sensitivities, for every segmentation."""
    # Early outputs count for nothing, so that credit has to cross several segments.
    # Late ones count for nothing, so that the first segment is left, in which all is exact.
    time, out, ends = np.arange(TIME)[None, :, None], [], []
    promise = _promise(problem.memory)
    for counted in (time >= 0, time >= 4, time < 4):
        each = replace(problem, weights=problem.weights * counted)
        exact = each.outcome(LOOP)
        for name, form in RTRL_FORMS.items():
            got, promised = each.outcome(form), each.outcome(promise, form.cuts)
            approximate = difference(promised.memory, exact.memory)[0] > 1e-9
            expected = {
                "memory": (promised if approximate else exact).memory,
                "inputs": promised.xs,
            }
            found = {"memory": got.memory, "inputs": got.xs}
            rule = "RTRL has the gradient of BPTT, and inputs that of their own segment"
            against = "BPTT"
            if is_random(got.sensitivity) and np.any(counted[:, form.cuts[1] :]):
                del expected["memory"], found["memory"]
                rule, against = "inputs have the gradient of their own segment", "BPTT in inputs"
            elif approximate:
                rule = "RTRL has the gradient of the loop that the approximation stands for"
                against = "its approximation"
            out.append(_check("RTRL", f"{name}, against {against}", found, expected, rule))
            ends.append(got.sensitivity)
    if not is_random(ends[0]):
        others = ends[1 : len(RTRL_FORMS)]
        worst = max((difference(end, ends[0]) for end in others), default=(0.0, ""))
        rule = "the sensitivity at the end does not depend on the segmentation"
        out.append(Check("RTRL", "sensitivities of all segmentations", *worst, rule=rule))
    # All weightings of the loss have one row.
    merged: dict[str, Check] = {}
    for check in out:
        merged[check.what] = check.worse(merged.get(check.what))
    return list(merged.values())


@jit
def _samples(memory, carry, xs, weights, keys, direction):
    """The gradient along a direction, for random signs from every key."""

    def of_key(key):
        state, sensitivity = carry
        sensitivity = jax.tree.map(
            lambda node: eqx.tree_at(lambda r: r.key, node, key), sensitivity, is_leaf=_is_rank_one
        )

        def loss(memory):
            carry, value = (state, sensitivity), 0.0
            for part in in_segments(4, 5).slices():
                carry, ys = memory.rtrl_scan(carry, xs[part])
                value += total(ys, weights[part])
            return value

        return along(direction, eqx.filter_grad(loss)(memory))

    return jax.lax.map(of_key, keys, batch_size=100)


def unbiased(problem: Problem, seed: int) -> list[Check]:
    """Compare the mean of a random sensitivity's gradient with the exact one.

    In standard errors, along a random direction.
    """
    if not is_random(problem.carry[1]):
        return []
    first = jax.tree.map(lambda leaf: leaf[:1], (problem.carry, problem.xs, problem.weights))
    carry, xs, weights = jax.tree.map(lambda leaf: leaf[0], first)
    one = replace(
        problem, carry=first[0], xs=first[1], weights=first[2], begin=np.zeros((1, TIME), bool)
    )
    exact = one.outcome(LOOP).memory
    rng = np.random.default_rng(seed)
    direction = jax.tree.map(lambda g: rng.normal(size=g.shape), exact)
    keys = jax.vmap(jax.random.key_data)(jax.random.split(jax.random.key(seed), _SAMPLES))
    samples = np.asarray(_samples(problem.memory, carry, xs, weights, keys, direction))
    error = abs(samples.mean() - float(along(direction, exact)))
    number = float(error / (samples.std() / np.sqrt(_SAMPLES)))
    rule = "the mean over random signs is the gradient of BPTT, within five standard errors"
    return [Check("RTRL", "mean of random sensitivities, in errors", number, "", 5.0, rule)]


def resets(problem: Problem) -> list[Check]:
    """What happens where an episode begins, in every form."""
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
    for name, form in {**forms_of(problem.memory), **RTRL_FORMS}.items():
        expected = one.outcome(form)
        other = replace(one, carry=turned, xs=before).outcome(form)

        def rest(outcome):
            # A sensitivity's random signs go on over a begin.
            kept = () if random else outcome.sensitivity
            return {"y": outcome.ys[:, first:], "state": outcome.end, "sensitivity": kept}

        keep(fresh, name, rest(other), rest(expected))
        if not random or form is not RTRL_FORMS["rtrl_step"]:
            keep(fresh, name, other.memory, expected.memory)
        crossed = (expected.xs[:, :first], expected.state)
        keep(crossing, name, crossed, jax.tree.map(np.zeros_like, crossed))
        keep(
            survives, name, rest(replace(one, carry=poisoned, xs=nan).outcome(form)), rest(expected)
        )
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
