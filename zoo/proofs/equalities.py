"""All forms of a memory against the plain loop, in values and gradients, and across resets."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rtrl
from zoo.proofs.forms import (
    FORMS,
    RTRL_FORMS,
    TIME,
    Problem,
    jit,
    loop,
    loop_of_rtrl,
    uneven_segments,
)
from zoo.proofs.losses import difference, total
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
            got, promised = each.outcome(form), each.outcome(loop_of_rtrl, cuts)
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
        merged[check.what] = check.worse(merged.get(check.what))
    return list(merged.values())


def _along(direction, gradient):
    pairs = zip(jax.tree.leaves(direction), jax.tree.leaves(gradient), strict=True)
    return sum((jnp.sum((d * g).real) for d, g in pairs), start=jnp.zeros(()))


@jit
def _samples(memory, carry, xs, weights, keys, direction):
    """The gradient along a direction, for random signs from every key."""

    def of_key(key):
        state, sensitivity = carry
        sensitivity = jax.tree.map(
            lambda node: eqx.tree_at(lambda r: r.key, node, key), sensitivity, is_leaf=_is_rank_one
        )

        def loss(memory):
            never = jnp.zeros(TIME, bool)
            _, ys = uneven_segments(memory, (state, sensitivity), xs, never, never)
            return total(ys, weights)

        return _along(direction, eqx.filter_grad(loss)(memory))

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
    exact = one.outcome(loop).memory
    rng = np.random.default_rng(seed)
    direction = jax.tree.map(lambda g: jnp.asarray(rng.normal(size=g.shape)), exact)
    keys = jax.vmap(jax.random.key_data)(jax.random.split(jax.random.key(seed), _SAMPLES))
    samples = np.asarray(_samples(problem.memory, carry, xs, weights, keys, direction))
    error = abs(samples.mean() - float(_along(direction, exact)))
    number = float(error / (samples.std() / np.sqrt(_SAMPLES)))
    rule = "the mean over random signs is the gradient of BPTT, within five standard errors"
    return [Check("RTRL", "mean of random sensitivities, in errors", number, "", 5.0, rule)]


def resets(problem: Problem) -> list[Check]:
    """What happens where an episode begins, in every form."""
    first = TIME // 2
    later = (np.arange(TIME) >= first)[None, :, None]
    weights = problem.weights * later
    begin = np.broadcast_to(np.arange(TIME) == first, problem.begin.shape)
    one = replace(problem, begin=begin, weights=weights)
    poisoned = _poisoned(problem.carry, jnp.nan)
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
        expected = clean.outcome(form)._replace(state=())
        for bad in (jnp.nan, jnp.inf):
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
    return eqx.combine(jax.tree.map(lambda leaf: jnp.full_like(leaf, bad), floats), rest)
