"""Every memory's forms against each other and the plain loop (DESIGN, invariants 1 to 3 and 6)."""

import jax
import numpy as np
from hypothesis import given

from tests.cases import CELLS, FEWER, STRUCTURES, for_each
from tests.zoo import forms
from tests.zoo.forms import TIME, assert_close

every_cell = for_each(CELLS, quick=FEWER)


@for_each(CELLS, quick=STRUCTURES)
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


@every_cell
@given(seed=forms.seeds, begin=forms.borders())
def test_loops_over_steps(case, seed, begin):
    memory, carry, xs, weights = forms.problem(case, seed)
    (states, ys), (exact, _, d_xs) = forms.reference(
        memory, carry[0], xs, begin, weights, forms.no_cuts()
    )
    _, (truncated, _, d_xs_now) = forms.reference(
        memory, carry[0], xs, begin, weights, ~forms.no_cuts()
    )
    ((state, got), (d_memory, d_inputs)), ((rtrl_carry, rtrl_ys), rtrl_gradient) = forms.looped(
        memory, carry, xs, begin, weights
    )
    end = jax.tree.map(lambda h: h[-1], states)
    assert_close(got, ys)
    assert_close(rtrl_ys, ys)
    assert_close(state, end)
    assert_close(rtrl_carry[0], end)
    assert_close((d_memory, d_inputs), (exact, d_xs))
    forms.assert_gradient(rtrl_gradient[0], exact, truncated, case.present)
    assert_close(rtrl_gradient[1], d_xs_now)


@every_cell
@given(seed=forms.seeds, begin=forms.borders(), lengths=forms.compositions())
def test_sensitivities_do_not_depend_on_the_segmentation(case, seed, begin, lengths):
    memory, carry, xs, weights = forms.problem(case, seed)
    carries, *_ = forms.segments(memory, carry, xs, begin, weights, lengths)
    _, ((rolled, _), _) = forms.looped(memory, carry, xs, begin, weights)
    assert_close(carries[-1][1][1], rolled[1])


@every_cell
@given(seed=forms.seeds, begin=forms.borders())
def test_scan_gradient_with_a_loss_of_the_final_state(case, seed, begin):
    """In parameters, inputs and the initial state."""
    memory, carry, xs, weights = forms.problem(case, seed)
    (states, ys), expected = forms.reference(
        memory, carry[0], xs, begin, weights, forms.no_cuts(), 0.7
    )
    out, gradient = forms.whole(memory, carry[0], xs, begin, weights, 0.7)
    assert_close(out, (jax.tree.map(lambda h: h[-1], states), ys))
    assert_close(gradient, expected)


@every_cell
@given(seed=forms.seeds, lengths=forms.compositions())
def test_a_begin_is_a_fresh_start(case, seed, lengths):
    """Values, sensitivities and gradients after it are those of a sequence of its own."""
    memory, carry, xs, weights = forms.problem(case, seed)
    first = seed % TIME
    begin = np.arange(TIME) == first
    after = weights * (np.arange(TIME) >= first)[:, None]
    carries, ys, scanned, gradient = forms.segments(memory, carry, xs, begin, after, lengths)
    fresh_carry = (memory.init_state(), carry[1])
    rest = [1] * (TIME - first)
    fresh = forms.segments(
        memory, fresh_carry, xs[first:], forms.no_cuts(len(rest)), weights[first:], rest
    )
    assert_close(carries[-1][1], fresh[0][-1][1])
    assert_close(carries[-1][2], fresh[0][-1][2])
    assert_close(ys[first:], fresh[1])
    assert_close(scanned[first:], fresh[2])
    (_, _), (exact, _, _) = forms.reference(
        memory, fresh_carry[0], np.roll(xs, -first, 0), np.arange(TIME) == TIME - first,
        np.roll(after, -first, 0), forms.no_cuts(),
    )  # fmt: skip
    cells_own = forms.split(gradient[0], case.present)[1]
    assert_close(cells_own, forms.split(exact, case.present)[1])


@every_cell
@given(seed=forms.seeds, lengths=forms.compositions())
def test_no_gradient_crosses_a_begin(case, seed, lengths):
    memory, carry, xs, weights = forms.problem(case, seed)
    first = 1 + seed % (TIME // 2)
    begin = np.arange(TIME) == first
    later = (np.arange(TIME) >= first)[:, None]

    def input_gradients(weights):
        _, _, _, (_, segmented) = forms.segments(memory, carry, xs, begin, weights, lengths)
        _, (_, d_state, scanned) = forms.whole(memory, carry[0], xs, begin, weights, 0.0)
        (_, (_, stepped)), (_, (_, rtrl_stepped)) = forms.looped(memory, carry, xs, begin, weights)
        return d_state, (segmented, scanned, stepped, rtrl_stepped)

    d_state, gradients = input_gradients(weights * later)
    assert all(np.all(np.asarray(g) == 0) for g in jax.tree.leaves(d_state))
    for gradient in gradients:
        assert np.all(np.asarray(gradient)[:first] == 0) and np.any(gradient)
    for gradient in input_gradients(weights * ~later)[1]:
        assert np.all(np.asarray(gradient)[first:] == 0) and np.any(gradient)


@every_cell
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
