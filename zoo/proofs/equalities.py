"""All forms of a memory against the plain loop, in values and gradients."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rtrl
from rtrl.dense import from_real_vector
from zoo.cell import AbstractCell
from zoo.proofs.dtypes import changed, kept
from zoo.proofs.forms import (
    LOOP,
    LOOP_OF_RULES,
    RTRL_STEP,
    TIME,
    Form,
    Problem,
    all_forms,
    forms_of,
    in_segments,
    jit,
    perturbed,
    rtrl_forms_of,
)
from zoo.proofs.forms import problem as draw_problem
from zoo.proofs.losses import along, difference, total
from zoo.proofs.report import Check
from zoo.stack import cells

_SAMPLES = 400
_LARGE = 1e20  # beside its square a segment's own part is less than a unit of rounding


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
    for name, form in all_forms(problem.memory).items():
        got = problem.outcome(form)
        out.append(
            _check("forms", name, {"state": got.end, "y": got.ys},
                   {"state": expected.end, "y": expected.ys}, rule)
        )  # fmt: skip
        start = problem.carry if form.cuts else (problem.carry[0], ())
        change = changed(start, (got.end, got.sensitivity))
        changes += [f"{name}, {change}"] if change else []
    return [kept(problem.xs.dtype, changes), *out]


@jit
def _without_flags(memory, carry, xs):
    one = memory.scan(carry[0], xs[:1])
    first, y = memory.step(carry[0], xs[0])
    end, ys = memory.scan(first, xs[1:])
    # The sensitivity is zero at first, so that steps come before a segment that might forget it.
    rolled, z = jax.lax.scan(lambda c, x: memory.rtrl_step(c, x), carry, xs[:7])
    after, zs = memory.rtrl_scan(rolled, xs[7:])
    outputs = jnp.concatenate([y[None], ys]), jnp.concatenate([z, zs])
    return one, (first, y[None]), (end, outputs[0]), (after, outputs[1])


def without_flags(problem: Problem) -> list[Check]:
    """The values of forms that are told of no episode border, for the first sequence."""
    problem = replace(problem, begin=np.zeros_like(problem.begin))
    plain, rolled = problem.outcome(LOOP), problem.outcome(RTRL_STEP)
    given = problem.carry, problem.xs, (plain.end, plain.ys), (rolled.end, rolled.sensitivity)
    carry, xs, wanted, (end, sensitivity) = jax.tree.map(lambda leaf: leaf[0], given)
    one, first, steps, segments = _without_flags(problem.memory, carry, xs)
    # Random signs depend on the segmentation.
    drawn = is_random(sensitivity)
    segments = ((segments[0][0], () if drawn else segments[0][1]), segments[1])
    compared = (
        ("step and scan", steps, wanted),
        ("scan of one step", one, first),
        ("rtrl_step and rtrl_scan", segments, ((end, () if drawn else sensitivity), wanted[1])),
    )
    rule = "without `begin` a form does what it does where that is false"
    named = lambda pair: dict(zip(("carry", "y"), pair, strict=True))  # noqa: E731
    return [
        _check("forms", f"{what}, without flags", named(found), named(expected), rule)
        for what, found, expected in compared
    ]


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
    promise, forms = _promise(problem.memory), rtrl_forms_of(problem.memory)
    for counted in (time >= 0, time >= 4, time < 4):
        each = replace(problem, weights=problem.weights * counted)
        exact = each.outcome(LOOP)
        for name, form in forms.items():
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
        others = ends[1 : len(forms)]
        worst = max((difference(end, ends[0]) for end in others), default=(0.0, ""))
        rule = "the sensitivity at the end does not depend on the segmentation"
        out.append(Check("RTRL", "sensitivities of all segmentations", *worst, rule=rule))
    # All weightings of the loss have one row.
    merged: dict[str, Check] = {}
    for check in out:
        merged[check.what] = check.worse(merged.get(check.what))
    return list(merged.values())


def constant_carries(problem: Problem) -> list[Check]:
    """Whether a gradient flows into a carry of the forms with sensitivities, or out of one."""
    worst = (0.0, "")
    for name, form in rtrl_forms_of(problem.memory).items():
        got = problem.outcome(form)
        other = replace(problem, on_state=0.7).outcome(form)
        incoming = difference(got.state, jax.tree.map(np.zeros_like, got.state))
        outgoing = difference(_gradient(other), _gradient(got))
        for (number, where), which in ((incoming, "in"), (outgoing, "out")):
            worst = max(worst, (number, f"{name}, the carry {which}{where}" if number else ""))
    rule = "a carry is a constant: the sensitivity stands for the past, and credit counts once"
    return [Check("RTRL", "gradients through a carry", *worst, rule=rule)]


@jit
def _samples(memory, carry, xs, weights, keys, directions):
    """The gradient along each of some directions, for random signs from every key."""

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

        gradient = eqx.filter_grad(loss)(memory)
        return jnp.stack([along(direction, gradient) for direction in directions])

    return jax.lax.map(of_key, keys, batch_size=100)


def unbiased(problem: Problem, seed: int) -> list[Check]:
    """Compare the mean of a random sensitivity's gradient with the exact one.

    In standard errors, along the exact one, where one that is too large or too small shows, and a
    random direction. There are two segments, from no sensitivity, so that it is the mean of what
    the signs add; `moved_on` is about what is there already.
    """
    if not is_random(problem.carry[1]):
        return []
    given = problem.carry, problem.xs, problem.weights
    carry, xs, weights = jax.tree.map(lambda leaf: leaf[0], given)
    # Of the first sequence alone, by the program for all of them.
    counted = (np.arange(len(problem.xs)) == 0)[:, None, None]
    never = np.zeros_like(problem.begin)
    one = replace(problem, begin=never, weights=problem.weights * counted)
    exact = one.outcome(_promise(problem.memory), (4,)).memory
    rng = np.random.default_rng(seed)
    directions = exact, jax.tree.map(lambda g: rng.normal(size=g.shape), exact)
    keys = jax.vmap(jax.random.key_data)(jax.random.split(jax.random.key(seed), _SAMPLES))
    samples = np.asarray(_samples(problem.memory, carry, xs, weights, keys, directions))
    errors = abs(samples.mean(0) - [float(along(direction, exact)) for direction in directions])
    number = float(np.max(errors / (samples.std(0) / np.sqrt(_SAMPLES))))
    rule = "the mean over random signs is the gradient of BPTT, within five standard errors"
    return [Check("RTRL", "mean of random sensitivities, in errors", number, "", 5.0, rule)]


def moved_on(problem: Problem, seed: int) -> list[Check]:
    """Compare what segments make of a random sensitivity with the plain loop's Jacobian.

    A segment moves s̃ ⊗ θ̃ to J s̃ ⊗ θ̃ and terms with its random signs, which grow with the root of
    that at most: beside a very large one they are rounding, and no mean has to be taken.
    """
    rule = "a segment multiplies a sensitivity by the Jacobian of the loop over `update`"
    memory, worst = problem.memory, None
    alone = [("", memory)] if isinstance(memory, AbstractCell) else []
    for path, cell in alone or cells(memory):
        if not isinstance(cell.structure, rtrl.UORO):
            continue
        number, where = _moved_on(problem if alone else draw_problem(cell, seed), seed)
        where = f"{path}{where}" if number > 1e-9 else ""
        what = "random sensitivities of the past, against BPTT"
        worst = Check("RTRL", what, number, where, rule=rule).worse(worst)
    return [] if worst is None else [worst]


def _moved_on(problem: Problem, seed: int) -> tuple[float, str]:
    state, (zeros,) = problem.carry
    large = perturbed(zeros, seed, _LARGE)
    # Only later outputs count, so that every segmentation has to carry the sensitivity on.
    weights = problem.weights * (np.arange(TIME) >= 4)[None, :, None]
    never = np.zeros_like(problem.begin)
    one = replace(problem, carry=(state, (large,)), begin=never, weights=weights)
    tangents = jax.vmap(from_real_vector)(large.state, eqx.filter(state, eqx.is_inexact_array))
    factors = jax.vmap(along)(tangents, one.outcome(LOOP).state)
    of_recurrence = jax.tree.map(lambda p: jnp.tensordot(factors, p, 1), large.parameters)

    def paired(memory):
        """With the gradient of the recurrence's parameters in the memory's own."""
        own = memory.recurrence_parameters()
        is_none = lambda node: node is None  # noqa: E731
        with_gradient = jax.tree.map(
            lambda g, p: None if g is None else p, of_recurrence, own, is_leaf=is_none
        )
        return along(of_recurrence, with_gradient)

    expected = eqx.filter_grad(paired)(problem.memory)
    in_units = lambda tree: jax.tree.map(lambda g: g / _LARGE**2, tree)  # noqa: E731
    return max(
        difference(in_units(one.outcome(form).memory), in_units(expected))
        for form in rtrl_forms_of(problem.memory).values()
    )
