"""Trace conditioning: its intervals, its targets, and what can be predicted knowing how much."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs

STEPS = 100_000
STREAMS = 2


@functools.cache
def streams(expected_isi):
    """Observations `[stream, time, stimulus]` and targets; E = 10 has the distractors too."""
    env = envs.TraceConditioning(expected_isi, 10 if expected_isi == 10 else 0)
    keys = jax.random.split(jax.random.key(1), STREAMS)
    stream = jax.vmap(lambda key: envs.trace_conditioning_stream(env, key, STEPS))
    return jax.device_get(jax.jit(stream)(keys))


def onsets(stimulus):
    """The steps at which it is on and was not on before."""
    return np.flatnonzero((stimulus > 0) & (np.concatenate([[0], stimulus[:-1]]) == 0))


def durations(stimulus):
    """Of every time that it is on, but for one that the end cuts off."""
    ends = np.flatnonzero((stimulus > 0) & (np.concatenate([stimulus[1:], [0]]) == 0)) + 1
    lengths = ends - onsets(stimulus)
    return lengths[:-1] if ends[-1] == len(stimulus) else lengths


def since(stimulus):
    """Steps since its last onset; many if there was none."""
    last = np.full(len(stimulus), -(10**6))
    at = onsets(stimulus)
    last[at] = at
    return np.minimum(np.arange(len(stimulus)) - np.maximum.accumulate(last), 500)


def conditional_mean(group, target):
    mean = np.bincount(group, target) / np.maximum(np.bincount(group), 1)
    return mean[group]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expected_isi", "floors"),
    [(10, (0.182, 0.128, 0.0124)), (20, (0.336, 0.216, 0.0155)), (30, (0.464, 0.256, 0.0192))],
)
def test_floors(expected_isi, floors):
    """The errors of three predictors, as measured elsewhere over as many steps."""
    observation, target = streams(expected_isi)
    errors = []
    for us, cs, g in zip(observation[..., 0], observation[..., 1], target, strict=True):
        g = g.astype(np.float64)
        memoryless = conditional_mean((us + 2 * cs).astype(int), g)
        since_cs, since_us = since(cs), since(us)
        # Between CS and US what counts is the time since the CS, otherwise that since the US.
        knows = conditional_mean(np.where(since_cs < since_us, since_cs, 1000 + since_us), g)
        predictions = jnp.stack([jnp.zeros(STEPS), memoryless, knows], axis=1)
        targets = jnp.broadcast_to(jnp.asarray(g)[:, None], predictions.shape)
        errors.append(envs.mean_squared_return_error(predictions, targets))
    np.testing.assert_allclose(np.mean(errors, axis=0), floors, rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expected_isi", "low", "high"),
    [(10, 7, 13), (20, 14, 26), (30, 20, 40)],
)
def test_intervals(expected_isi, low, high):
    """Every one is uniform over its bounds, both included; chi-square within five deviations."""
    isi, iti = [], []
    for us, cs in zip(*np.moveaxis(streams(expected_isi)[0][..., :2], -1, 0), strict=True):
        cs, us = onsets(cs), onsets(us)
        n = min(len(cs), len(us))
        isi.append(us[:n] - cs[:n])
        iti.append(cs[1:n] - us[: n - 1])
        # The first CS comes after such an interval too.
        assert 80 <= cs[0] <= 120
    for intervals, least, most in ((isi, low, high), (iti, 80, 120)):
        counts = np.bincount(np.concatenate(intervals))
        assert (counts[:least] == 0).all()
        counts = counts[least:]
        assert len(counts) == most - least + 1
        expected = counts.mean()
        assert expected > 30
        deviation = np.sqrt(2 * (len(counts) - 1))
        assert ((counts - expected) ** 2 / expected).sum() < len(counts) - 1 + 5 * deviation


@pytest.mark.slow
def test_durations():
    for observation in streams(10)[0]:
        assert (durations(observation[:, 0]) == 2).all()
        for stimulus in observation[:, 1:].T:
            assert (durations(stimulus) == 4).all()


@pytest.mark.slow
def test_distractors_begin_at_their_rates():
    observation = np.concatenate(streams(10)[0])
    for i, stimulus in enumerate(observation[:, 2:].T, start=1):
        gaps = np.diff(onsets(stimulus)) - 4  # steps at which it was off: geometric
        rate = 1 / (10 * i)
        assert gaps.min() >= 1
        error = np.sqrt(1 - rate) / rate / np.sqrt(len(gaps))
        assert abs(gaps.mean() - 1 / rate) < 5 * error
        share = (gaps <= 10 * i).mean()
        law = 1 - (1 - rate) ** (10 * i)
        assert abs(share - law) < 5 * np.sqrt(law * (1 - law) / len(gaps))
    # They tell nothing of each other, nor of the stimuli that count. A step's state lasts for
    # some steps, which is why the bound is that of a sixteenth as many.
    correlation = np.corrcoef(observation[:, 2:].T) - np.eye(10)
    assert np.abs(correlation).max() < 5 / np.sqrt(len(observation) / 16)


def naive_targets(us, discount):
    return [
        sum(discount**k * us[t + 1 + k] for k in range(len(us) - t - 1)) for t in range(len(us))
    ]


def test_targets_by_hand():
    us = jnp.array([0.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    expected = [0.5 + 0.25 + 0.0625, 1.0 + 0.5 + 0.125, 1.0 + 0.25, 0.5, 1.0, 0.0]
    np.testing.assert_allclose(envs.trace_conditioning_targets(us, 0.5), expected, rtol=1e-12)
    both = envs.trace_conditioning_targets(jnp.stack([us, 2 * us], axis=1), 0.5)
    np.testing.assert_allclose(both[:, 1], 2 * np.asarray(expected), rtol=1e-12)


@pytest.mark.slow
def test_a_streams_targets_know_what_comes_after_its_end():
    env = envs.TraceConditioning(num_distractors=1, min_iti=3, max_iti=9)
    key = jax.random.key(0)
    observation, target = envs.trace_conditioning_stream(env, key, 400)
    expected = np.asarray(naive_targets(np.asarray(observation[:, 0], np.float64), 0.9))
    short, short_target = envs.trace_conditioning_stream(env, key, 150)
    # The same key makes the same stream, however long.
    np.testing.assert_array_equal(short, observation[:150])
    np.testing.assert_allclose(short_target, expected[:150], rtol=0, atol=1e-5)
    np.testing.assert_allclose(short_target, target[:150], rtol=0, atol=1e-5)


@pytest.mark.slow
def test_the_environment_rewards_the_us_so_that_its_return_is_the_target():
    env, params = envs.make("trace_conditioning", min_iti=5, max_iti=9)

    def step(state, key):
        observation, state, reward, terminated, truncated, _ = env.step(key, state, 0, params)
        return state, (observation, reward, terminated | truncated)

    first, state = env.reset(jax.random.key(3), params)
    keys = jax.random.split(jax.random.key(4), 400)
    _, (rest, reward, done) = jax.jit(lambda s: jax.lax.scan(step, s, keys))(state)
    assert not done.any()
    assert 0.05 < reward.mean() < 0.5
    us = jnp.concatenate([first[None], rest])[:, 0]
    returns, discounted = 0.0, []
    for r in np.asarray(reward, np.float64)[::-1]:
        returns = r + env.discount_factor * returns
        discounted.append(returns)
    target = envs.trace_conditioning_targets(us, env.discount_factor)[:-1]
    np.testing.assert_allclose(target, discounted[::-1], rtol=0, atol=1e-5)


@pytest.mark.slow
def test_overlapping_stimuli():
    """With an ISI of 2 the US begins while the CS is still on."""
    env = envs.TraceConditioning(2, 0, min_iti=10, max_iti=10)
    observation, _ = envs.trace_conditioning_stream(env, jax.random.key(0), 100)
    us, cs = np.asarray(observation).T
    assert (onsets(us) == onsets(cs) + 2).all()
    assert (durations(cs) == 4).all()
    assert (durations(us) == 2).all()


def test_mean_squared_return_error():
    prediction, target = jnp.array([[0.0, 1.0], [1.0, 1.0]]), jnp.array([[0.0, 3.0], [2.0, 2.0]])
    error = envs.mean_squared_return_error(prediction, target)
    np.testing.assert_allclose(error, [0.5, 2.5], rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: envs.TraceConditioning(expected_isi=1),
            r"`expected_isi` \(=1\) must be a whole number from 2 to 1000000000\.",
        ),
        (
            lambda: envs.TraceConditioning(max_iti=2**31),
            r"`max_iti` \(=2147483648\) must be a whole number of at most 1000000000\.",
        ),
        (
            lambda: envs.make("trace_conditioning", num_distractors=11),
            r"`num_distractors` \(=11\) must be a whole number from 0 to 10\.",
        ),
        (
            lambda: envs.TraceConditioning(min_iti=1),
            r"`min_iti` \(=1\) must be a whole number from 2 to 1000000000\.",
        ),
        (
            lambda: envs.TraceConditioning(max_iti=79),
            r"`max_iti` \(=79\) must be at least `min_iti` \(=80\)\.",
        ),
        (
            lambda: envs.trace_conditioning_stream(envs.TraceConditioning(), jax.random.key(0), 0),
            r"`steps` \(=0\) must be at least 1\.",
        ),
        (
            lambda: envs.trace_conditioning_targets(jnp.zeros(3), 1.0),
            r"`discount` \(=1\.0\) must be at least 0 and less than 1\.",
        ),
    ],
)
def test_values_that_break_a_rule(make, message):
    with pytest.raises(ValueError, match=message):
        make()
