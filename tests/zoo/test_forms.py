"""Every memory's proof, and what hypothesis draws beyond it (DESIGN, invariants 1 to 3 and 6)."""

import jax
import numpy as np
import pytest
from hypothesis import given

import zoo
from tests.cases import CELLS, DISTINCT, FEWER, KINDS, RULES, for_each
from tests.zoo import forms
from tests.zoo.forms import TIME, assert_close

every_cell = for_each(CELLS, quick=FEWER)


@pytest.mark.slow
@for_each((*DISTINCT, *RULES))
def test_every_promise_is_kept(case):
    zoo.prove(case.build, draws=3)


@every_cell
@given(seed=forms.seeds, begin=forms.borders(), lengths=forms.compositions())
def test_segments(case, seed, begin, lengths):
    """Any segmentation: states and outputs of the loop, gradients of BPTT, nothing crosses."""
    memory, carry, xs, weights = forms.problem(case, seed)
    weights[: seed % 5] = 0  # so that early parameters are reached from later segments only
    (states, ys), (exact, _, _) = forms.reference(
        memory, carry[0], xs, begin, weights, forms.no_cuts()
    )
    _, (truncated, _, d_xs) = forms.reference(
        memory, carry[0], xs, begin, weights, forms.cuts_at(lengths)
    )
    carries, got, scanned, gradient = forms.segments(memory, carry, xs, begin, weights, lengths)
    assert_close(got, ys)
    assert_close(scanned, ys)
    for end, (state, _), scanned_state in carries:
        expected = jax.tree.map(lambda h, end=end: h[end - 1], states)
        assert_close(state, expected)
        assert_close(scanned_state, expected)
    forms.assert_gradient(gradient[0], exact, truncated, case.present)
    assert_close(gradient[1], d_xs)


@for_each(KINDS, quick=FEWER)
@given(seed=forms.seeds, begin=forms.borders(1))
def test_one_step_and_one_unit(case, seed, begin):
    memory, carry, xs, weights = forms.problem(case, seed, time=1, inputs=1, hidden=1)
    (states, ys), (exact, _, d_xs) = forms.reference(
        memory, carry[0], xs, begin, weights, forms.no_cuts(1)
    )
    end = jax.tree.map(lambda h: h[0], states)
    out, gradient, scanned = forms.segment(memory, carry, xs, begin, weights)
    assert_close((out[0][0], out[1]), (end, ys))
    assert_close(scanned, (end, ys))
    assert_close(gradient, (exact, d_xs))


@every_cell
def test_finite_differences(case):
    """Of the plain loop's loss along a random direction, against the RTRL gradient."""
    memory, carry, xs, weights = forms.problem(case, 3)
    begin = np.arange(TIME) == 5
    lengths = [4, 4, 4]
    _, _, _, (gradient, _) = forms.segments(memory, carry, xs, begin, weights, lengths)
    if case.present:  # exact in one segment only
        _, _, _, (gradient, _) = forms.segments(memory, carry, xs, begin, weights, [TIME])
    rng = np.random.default_rng(0)
    direction = jax.tree.map(lambda g: forms.normal(rng, g), gradient)

    def value(distance):
        moved = jax.tree.map(
            lambda p, d: p if d is None else p + distance * d,
            memory,
            direction,
            is_leaf=lambda x: x is None,
        )
        (_, ys), _ = forms.reference(moved, carry[0], xs, begin, weights, forms.no_cuts())
        return float(forms.total(ys, weights))

    step = 1e-5
    numeric = (value(step) - value(-step)) / (2 * step)
    # JAX's gradient in a complex number is the conjugate of the direction of ascent.
    exact = sum(
        np.sum((np.asarray(g) * d).real)
        for g, d in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True)
    )
    assert abs(numeric) > 1e-2
    np.testing.assert_allclose(exact, numeric, rtol=1e-6)
