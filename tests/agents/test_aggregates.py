"""Aggregates of many runs, against their definitions by hand and against scipy."""

import numpy as np
import pytest

from agents.running.aggregates import (
    bootstrap,
    iqm,
    mean,
    median,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
)

SCORES = np.array([[0.0, 1.0], [0.5, 3.0], [1.0, 2.0], [0.1, 6.0], [0.2, 0.3]])


def test_by_hand():
    # In order: 0, .1, .2, .3, .5, 1, 1, 2, 3, 6, of which two at each end are left out.
    assert iqm(SCORES) == pytest.approx((0.2 + 0.3 + 0.5 + 1 + 1 + 2) / 6, abs=1e-12)
    assert median(SCORES) == pytest.approx((0.36 + 2.46) / 2, abs=1e-12)
    assert mean(SCORES) == pytest.approx(1.41, abs=1e-12)
    assert optimality_gap(SCORES) == pytest.approx((1 + 0.9 + 0.8 + 0.7 + 0.5) / 10, abs=1e-12)
    profile = performance_profile(SCORES, np.array([-1.0, 0.0, 1.0, 6.0]))
    np.testing.assert_array_equal(profile, [1.0, 0.9, 0.3, 0.0])
    one, other = np.array([[1.0], [2.0]]), np.array([[0.0], [1.0], [3.0]])
    # 1 beats 0 and draws with 1; 2 beats 0 and 1.
    assert probability_of_improvement(one, other) == pytest.approx((1 + 0.5 + 2) / 6, abs=1e-12)


@pytest.mark.parametrize("runs", [1, 3, 4, 7, 10])
def test_against_scipy(runs):
    from scipy import stats  # which takes half a second, of every worker that collects tests

    scores = np.random.default_rng(runs).normal(size=(runs, 3)).round(1)
    than = np.random.default_rng(1).normal(size=(5, 3)).round(1)
    assert iqm(scores) == pytest.approx(stats.trim_mean(scores, 0.25, axis=None), abs=1e-12)
    tests = [stats.mannwhitneyu(scores[:, i], than[:, i]).statistic for i in range(3)]
    expected = np.mean(tests) / (runs * 5)
    assert probability_of_improvement(scores, than) == pytest.approx(expected, abs=1e-12)


def test_what_is_no_number_is_not_taken_for_one():
    ones = np.ones((3, 1))
    assert np.isnan(iqm(np.array([1.0, 2.0, 3.0, np.nan])))
    assert np.isnan(probability_of_improvement(ones, np.full((3, 1), np.nan)))
    assert np.isnan(performance_profile(np.array([[1.0], [np.nan]]), np.zeros(2))).all()
    with pytest.raises(ValueError, match=r"`scores` \(shape \(3, 4\)\) and `than` \(shape \(3, 1"):
        probability_of_improvement(np.ones((3, 4)), ones)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (np.uint8(1), np.uint8(2), 0.0),
        (True, False, 1.0),
        (-np.inf, -np.inf, 0.5),
        (np.inf, np.inf, 0.5),
    ],
)
def test_scores_are_compared_and_not_subtracted(one, other, expected):
    assert probability_of_improvement(np.array([[one]]), np.array([[other]])) == expected


def test_numbers_of_python_are_scores(unhooked):
    assert probability_of_improvement([[1, 2]], [[0, 2]]) == 0.75
    np.testing.assert_array_equal(performance_profile([[1, 2]], [0, 1]), [1, 0.5])


def test_each_threshold_has_an_interval_of_its_own():
    thresholds = np.array([0.1, 1.0])
    value, low, high = bootstrap(lambda x: performance_profile(x, thresholds), SCORES)
    for number, threshold in enumerate(thresholds):
        alone = bootstrap(lambda x, t=threshold: float(np.mean(x > t)), SCORES)
        assert (value[number], low[number], high[number]) == alone


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap(mean, SCORES, samples=0), r"`samples` \(=0\) must be a whole number of"),
        (lambda: bootstrap(mean, SCORES, confidence=95), r"`confidence` \(=95\) must be above 0 a"),
        (lambda: bootstrap(mean, SCORES, seed=-1), r"`seed` \(=-1\) must be a whole number from 0"),
        (lambda: bootstrap(mean), "`scores` must be given"),
        (lambda: bootstrap(lambda x: None, SCORES), "`aggregate` must return numbers, not None"),
        (
            lambda: bootstrap(mean, SCORES, vectorized=True),
            r"`aggregate` must return a value for each of 2000 samples .*, not shape \(\)",
        ),
        (lambda: optimality_gap(SCORES, best="x"), r"`best` \(='x'\) must be a number"),
        (lambda: optimality_gap(SCORES, best=np.nan), r"`best` \(=nan\) must be a number, finite"),
        (lambda: mean(np.ones((0, 2))), r"`scores` \(shape \(0, 2\)\) must be at least one"),
        (lambda: iqm("abc"), r"`scores` \(='abc'\) must be an array of numbers"),
        (lambda: optimality_gap([]), r"`scores` \(shape \(0,\)\) must be at least one number"),
        (lambda: median(np.ones(3)), r"`scores` \(shape \(3,\)\) must be \[runs, tasks\]"),
    ],
)
def test_what_cannot_be_aggregated_is_named(call, message, unhooked):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_the_interval_of_a_mean_is_as_wide_as_its_error_and_of_each_task_apart():
    generator = np.random.default_rng(0)
    # Tasks that lie far apart: were runs drawn across tasks, the interval would be wide.
    scores = generator.normal(size=(40, 5)) + 100 * np.arange(5)
    value, low, high = bootstrap(mean, scores, samples=4000)
    error = np.sqrt(scores.var(0, ddof=1).mean() / scores.size)
    assert value == pytest.approx(scores.mean())
    assert (high - low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.05)
    assert (value, low, high) == bootstrap(mean, scores, samples=4000)


def test_all_samples_at_once_have_the_interval_of_one_after_the_other():
    other = SCORES[::2] ** 2
    alone = bootstrap(lambda a, b: mean(a) - mean(b), SCORES, other)
    of_tables = lambda x: np.mean(x, axis=(-2, -1))  # noqa: E731
    several = bootstrap(lambda a, b: of_tables(a) - of_tables(b), SCORES, other, vectorized=True)
    np.testing.assert_allclose(several, alone, rtol=1e-12)


@pytest.mark.parametrize(
    ("scores", "rule"),
    [(np.ones(3), "must be"), (np.ones((0, 2)), "must be"), (np.full((2, 2), np.nan), "finite")],
)
def test_what_is_no_table_of_scores_is_refused(scores, rule):
    with pytest.raises(ValueError, match=rf"`scores` .*{rule}"):
        bootstrap(mean, scores)
