"""Every memory's proof, and what hypothesis draws beyond it (DESIGN, invariants 1 to 3 and 6)."""

from dataclasses import replace

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given

import zoo
from tests.cases import CELLS, DISTINCT, FEWER, KINDS, RULED, RULES, for_each
from tests.zoo import forms
from tests.zoo.forms import assert_close
from zoo.proofs import equalities
from zoo.proofs.forms import BATCH, LOOP, SEGMENTS, TIME, in_scans, in_segments, perturbed
from zoo.proofs.forms import problem as draw_problem
from zoo.proofs.losses import along

every_cell = for_each(CELLS, quick=FEWER)


@pytest.mark.slow
@for_each((*DISTINCT, *RULES))
def test_every_promise_is_kept(case, capsys):
    report = zoo.prove(forms.built(case)[0])
    printed = capsys.readouterr().out
    assert report.name in printed and "FAILS" not in printed
    found = {check.invariant for check in report.checks}
    assert found >= {"constants", "dtypes", "forms", "BPTT", "RTRL", "resets"}
    if case.name in ("mingru", "gru", "lmu", "deltanet"):
        assert max(report.worst()["RTRL"], report.worst()["BPTT"]) < 1e-12


@every_cell
@given(
    seed=forms.seeds,
    begin=st.tuples(*[forms.borders(TIME)] * BATCH).map(np.stack),
    lengths=forms.compositions(TIME, SEGMENTS),
)
def test_segments(case, seed, begin, lengths):
    """Any segmentation: states and outputs of the loop, gradients of BPTT, nothing crosses.

    In the programs of the proof; of kinds of recurrences also `rtrl_scan` of a single step.
    """
    problem = replace(draw_problem(perturbed(forms.built(case)[0], seed), seed), begin=begin)
    # So that early parameters are reached from later segments only.
    problem = replace(problem, weights=problem.weights * (np.arange(TIME) >= seed % 5)[:, None])
    form = in_scans(*lengths) if case in RULED else in_segments(*lengths)
    got, exact, truncated = (
        problem.outcome(f, c) for f, c in ((form, ()), (LOOP, ()), (LOOP, form.cuts))
    )
    assert_close((got.ys, got.end), (exact.ys, exact.end))
    forms.assert_gradient(got.memory, exact.memory, truncated.memory, case.present)
    assert_close(got.xs, truncated.xs)


@for_each(KINDS, quick=FEWER)
@given(seed=forms.seeds, begin=forms.borders(1))
def test_one_step_and_the_fewest_units(case, seed, begin):
    memory, carry, xs, weights = forms.problem(case, seed, time=1, inputs=1, hidden=case.fewest)
    (states, ys), (exact, _, d_xs) = forms.reference(
        memory, carry[0], xs, begin, weights, forms.no_cuts(1)
    )
    end = jax.tree.map(lambda h: h[0], states)
    out, gradient, scanned = forms.segment(memory, carry, xs, begin, weights)
    assert_close((out[0][0], out[1]), (end, ys))
    assert_close(scanned, (end, ys))
    assert_close(gradient, (exact, d_xs))


@for_each(KINDS, quick=FEWER)
def test_without_flags(case):
    """Of the kinds' own forms; those that a cell states itself its proof looks at."""
    problem = draw_problem(perturbed(forms.built(case)[0], 3), 3)
    for check in equalities.without_flags(problem):
        assert check.passed, check.sentence()


@every_cell
def test_finite_differences(case):
    """Of the plain loop's loss along a random direction, against the RTRL gradient."""
    memory = perturbed(forms.built(case)[0], 3)
    begin = np.broadcast_to(np.arange(TIME) == 5, (BATCH, TIME))
    problem = replace(draw_problem(memory, 3), begin=begin)
    if case.present:  # exact in one segment only
        problem = replace(problem, weights=problem.weights * (np.arange(TIME) < 4)[:, None])
    gradient = problem.outcome(in_segments(4, 1, 4)).memory
    rng = np.random.default_rng(0)
    direction = jax.tree.map(lambda g: forms.normal(rng, g), gradient)

    def value(distance):
        moved = jax.tree.map(
            lambda p, d: p if d is None else p + distance * d,
            memory,
            direction,
            is_leaf=lambda x: x is None,
        )
        return float(forms.total(replace(problem, memory=moved).outcome(LOOP).ys, problem.weights))

    step = 1e-5

    def slope(step):
        return (value(step) - value(-step)) / (2 * step)

    # Richardson's: of two central differences, without their error of second order. The step is as
    # short as rounding lets it, because of kinks.
    numeric = (4 * slope(step) - slope(2 * step)) / 3
    # JAX's gradient in a complex number is the conjugate of the direction of ascent.
    exact = float(along(direction, gradient))
    assert abs(numeric) > 1e-2
    np.testing.assert_allclose(exact, numeric, rtol=1e-6)
