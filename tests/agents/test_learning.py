"""What algorithms learn with, each by hand or against a plain loop."""

import dataclasses
import re
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from agents.envs.core.statistics import RunningStatistics
from agents.learning.losses import clipped_surrogate, masked_mean, standardize, value_loss
from agents.learning.minibatches import epochs_of_minibatches, minibatch_indices, staleness
from agents.learning.returns import (
    discounted_return,
    gae,
    lambda_return,
    next_values,
    running_return,
    vtrace,
)
from agents.learning.scaling import Scaling
from agents.learning.schedules import falling_rate, linear
from agents.learning.segments import from_segments, take, to_segments, to_starts
from agents.learning.surrogate import Sample, surrogate_loss
from agents.networks import Categorical
from tests.agents.by_hand import gae_by_hand, vtrace_by_hand


def test_gae_by_hand():
    # γ = λ = ½, one environment: δ = (1 + ½·2 - 1, 0 + 0 - 2, 3 + ½·4 - 1) = (1, -2, 4).
    # Step 1 terminates, so A = (1 + ¼·(-2), -2, 4).
    advantage = gae(
        jnp.array([1.0, 0.0, 3.0]),
        jnp.array([1.0, 2.0, 1.0]),
        jnp.array([2.0, 7.0, 4.0]),
        jnp.array([False, True, False]),
        jnp.array([False, False, False]),
        discount=0.5,
        gae_lambda=0.5,
    )
    np.testing.assert_allclose(advantage, [0.5, -2.0, 4.0], atol=1e-15)


def test_gae_equals_the_loop_with_both_ways_to_end():
    rng = np.random.default_rng(0)
    reward, value, following = rng.normal(size=(3, 40, 5))
    terminated, truncated = rng.random((2, 40, 5)) < 0.15
    assert np.any(terminated & truncated)
    got = gae(
        *map(jnp.asarray, (reward, value, following, terminated, truncated)),
        discount=0.97,
        gae_lambda=0.9,
    )
    expected = gae_by_hand(reward, value, following, terminated, truncated, 0.97, 0.9)
    np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize(("max_ratio", "max_trace"), [(1.0, 1.0), (2.0, 0.7)])
def test_vtrace_equals_the_loop_with_both_ways_to_end(max_ratio, max_trace):
    """Also where `next_value` is not of the pass that `value` is of."""
    rng = np.random.default_rng(1)
    reward, value, following = rng.normal(size=(3, 40, 5))
    ratio = np.exp(rng.normal(size=(40, 5)))
    terminated, truncated = rng.random((2, 40, 5)) < 0.3
    assert np.any(terminated & truncated)
    found = vtrace(
        *map(jnp.asarray, (ratio, reward, value, following, terminated, truncated)),
        discount=0.97,
        max_ratio=max_ratio,
        max_trace=max_trace,
    )
    expected = vtrace_by_hand(
        ratio, reward, value, following, terminated, truncated, 0.97, max_ratio, max_trace
    )
    np.testing.assert_allclose(found, expected, atol=1e-12)
    unread = np.where(terminated, np.nan, following)
    again = vtrace(
        *map(jnp.asarray, (ratio, reward, value, unread, terminated, truncated)),
        discount=0.97,
        max_ratio=max_ratio,
        max_trace=max_trace,
    )
    np.testing.assert_array_equal(again, found)


def test_vtrace_of_the_policy_that_acted_is_gae_without_lambda():
    rng = np.random.default_rng(2)
    reward, value = map(jnp.asarray, rng.normal(size=(2, 30, 2)))
    terminated, truncated = (jnp.asarray(x) for x in rng.random((2, 30, 2)) < 0.1)
    final = jnp.asarray(rng.normal(size=(30, 2)))
    following = next_values(value, final[-1], terminated | truncated, final)
    rest = reward, value, following, terminated, truncated
    target, advantage = vtrace(jnp.ones((30, 2)), *rest, discount=0.9)
    expected = gae(*rest, discount=0.9, gae_lambda=1.0)
    np.testing.assert_allclose(advantage, expected, atol=1e-12)
    np.testing.assert_allclose(target, expected + value, atol=1e-12)


def test_next_values_take_the_final_observation_where_an_episode_ends():
    value = jnp.array([1.0, 2.0, 3.0])
    got = next_values(
        value, jnp.array(4.0), jnp.array([False, True, False]), jnp.array([8.0, 9.0, 8.0])
    )
    np.testing.assert_array_equal(got, [2.0, 9.0, 4.0])


def test_returns_by_hand(unhooked):
    reward, ended = jnp.array([1.0, 2.0, 4.0]), jnp.array([False, True, False])
    got = discounted_return(reward, ended, jnp.array(8.0), discount=0.5)
    np.testing.assert_array_equal(got, [2.0, 2.0, 8.0])
    got = discounted_return([1.0, 2.0, 4.0], [False, True, False], 8.0, discount=0.5)
    np.testing.assert_array_equal(got, [2.0, 2.0, 8.0])
    got = running_return(jnp.ones(3), ended, jnp.array(4.0), discount=0.5)
    np.testing.assert_array_equal(got, [3.0, 1.0, 1.5])
    got = running_return(jnp.ones(3, int), ended, jnp.array(4.0), discount=0.5)
    np.testing.assert_array_equal(got, [3.0, 1.0, 1.5])
    arrays = np.array([1.0, 2.0, 4.0]), np.ones(3), ended, np.zeros(3, bool)
    got = lambda_return(*map(np.asarray, arrays), discount=0.5, trace_decay=1.0)
    np.testing.assert_array_equal(got, [2.0, 2.0, 4.5])


def test_flags_that_are_no_booleans_are_refused(unhooked):
    """0 and 1 as whole numbers would be -1 and -2 where they are negated."""
    x, right, whole = np.ones(3, np.float32), np.zeros(3, bool), np.array([0, 0, 1])
    returns = {
        "done": lambda done: discounted_return(x, done, np.float32(0), discount=0.9),
        "terminated": lambda flag: gae(x, x, x, flag, right, discount=0.9, gae_lambda=1.0),
        "truncated": lambda flag: lambda_return(x, x, right, flag, discount=0.9, trace_decay=1.0),
        "terminated ": lambda flag: vtrace(x, x, x, x, flag, right, discount=0.9),
    }
    for name, compute in returns.items():
        for flag in (whole, whole.astype(np.uint8), whole.astype(np.float32), None):
            with pytest.raises(TypeError, match=rf"`{name.strip()}` \(=.*\) must be a boolean ar"):
                compute(flag)
        with pytest.raises(ValueError, match=rf"`{name.strip()}` \(shape \(0,\)\) must have a ti"):
            compute(np.zeros(0, bool))
    np.testing.assert_allclose(returns["done"]([False, False, True]), [2.71, 1.9, 1.0], rtol=1e-6)


ENDS = "terminated", "truncated"
ALIKE = [  # arguments of one shape, and those of a step of it
    (discounted_return, ("reward", "done"), ("last",), {"discount": 0.9}),
    (running_return, ("reward", "begin"), ("before",), {"discount": 0.9}),
    (gae, ("reward", "value", "next_value", *ENDS), (), {"discount": 0.9, "gae_lambda": 0.9}),
    (lambda_return, ("reward", "next_value", *ENDS), (), {"discount": 0.9, "trace_decay": 0.9}),
    (vtrace, ("reward", "ratio", "value", "next_value", *ENDS), (), {"discount": 0.9}),
    (next_values, ("value", "done", "final_value"), ("last_value",), {}),
    (clipped_surrogate, ("ratio", "advantage"), (), {"clip": 0.2}),
    (value_loss, ("value", "old_value", "target"), (), {"clip": None}),
    (masked_mean, ("x", "mask"), (), {}),
]


@pytest.mark.parametrize(("function", "whole", "of_a_step", "options"), ALIKE)
def test_arrays_that_would_be_broadcast_are_refused(function, whole, of_a_step, options, unhooked):
    """As many environments as steps: an array without an axis was read along the wrong one."""
    numbers = np.ones((3, 3), np.float32)
    flags = {"done", "begin", "mask", *ENDS}
    right = {name: numbers > 0 if name in flags else numbers for name in whole}
    right |= dict.fromkeys(of_a_step, numbers[0])
    call = lambda given: jax.eval_shape(partial(function, **options), **given)  # noqa: E731
    call(right)
    for name in (*whole[1:], *of_a_step):
        for wrong in (right[name][0], right[name][:1], right[name][..., None]):
            found = re.escape(f"`{name}` (shape {wrong.shape}) must have the shape of ")
            with pytest.raises(ValueError, match=f"{found}.*`{whole[0]}`"):
                call(right | {name: wrong})


def test_vtrace_of_whole_numbers_is_discounted(unhooked):
    none = np.zeros(3, bool)
    target, advantage = vtrace(
        np.ones(3), np.array([1, 2, 3]), np.zeros(3, int), np.zeros(3), none, none, discount=0.5
    )
    np.testing.assert_array_equal(target, [2.75, 3.5, 3.0])
    np.testing.assert_array_equal(advantage, target)


def test_losses_by_hand():
    ratio = jnp.array([1.5, 0.5, 1.5, 0.5])
    advantage = jnp.array([1.0, 1.0, -1.0, -1.0])
    # Terms of the minimum: 1.2, 0.5, -1.5, -0.8.
    assert clipped_surrogate(ratio, advantage, clip=0.2) == pytest.approx(0.15)
    value, old, target = jnp.array([2.0]), jnp.array([0.0]), jnp.array([3.0])
    assert value_loss(value, old, target, clip=None) == 0.5
    assert value_loss(value, old, target, clip=1.0) == 2.0
    x = standardize(jnp.array([1.0, 2.0, 6.0]))
    assert abs(float(x.mean())) < 1e-12 and float(x.std()) == pytest.approx(1, abs=1e-7)


def test_the_surrogate_loss_and_the_divergences_by_hand():
    policy = Categorical(jnp.log(jnp.array([[0.5, 0.5], [0.2, 0.8]])))
    sample = Sample(
        inputs=None,
        action=jnp.array([0, 1]),
        log_prob=jnp.log(jnp.array([0.4, 0.8])),
        value=jnp.array([0.0, 1.0]),
        advantage=jnp.array([2.0, 4.0]),
        target=jnp.array([3.0, 1.0]),
    )
    value = jnp.array([1.0, 1.0])
    run = partial(
        surrogate_loss,
        policy,
        value,
        clip=0.1,
        value_clip=0.5,
        value_coefficient=2.0,
        entropy_coefficient=0.5,
    )
    loss, metrics = run(sample)
    # Ratios 1.25 and 1, advantages standardized to ∓1, and the first value moves by 0.5 only.
    entropy = -np.mean([2 * 0.5 * np.log(0.5), 0.2 * np.log(0.2) + 0.8 * np.log(0.8)])
    np.testing.assert_allclose(metrics["policy_loss"], -(-1.25 + 1) / 2, rtol=1e-7)
    np.testing.assert_allclose(metrics["value_loss"], 0.5 * 2.5**2 / 2, rtol=1e-12)
    np.testing.assert_allclose(loss, 0.125 + 2 * 1.5625 - 0.5 * entropy, rtol=1e-7)
    np.testing.assert_allclose(metrics["kl_k1"], -np.log(1.25) / 2, rtol=1e-12)
    np.testing.assert_allclose(metrics["kl_k2"], np.log(1.25) ** 2 / 4, rtol=1e-12)
    np.testing.assert_allclose(metrics["approximate_kl"], (0.25 - np.log(1.25)) / 2, rtol=1e-12)
    assert metrics["clip_fraction"] == 0.5 and metrics["ratio_error"] == pytest.approx(0.25)
    _, metrics = run(dataclasses.replace(sample, log_prob=jnp.log(jnp.array([0.5, 1.0]))))
    assert metrics["clip_fraction"] == 0.5 and metrics["ratio_error"] == pytest.approx(0.2)


@pytest.mark.parametrize("envs", [1, 7])
def test_statistics_are_per_feature_whatever_the_number_of_environments(envs):
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(30, envs, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, -1.0]
    flat = samples.reshape(-1, 3)

    @jax.jit
    def update(pieces, flat):
        start = RunningStatistics.init((3,))
        end, _ = jax.lax.scan(lambda now, piece: (now.update(piece), None), start, pieces)
        return end, jax.vmap(end.normalize)(flat)

    pieces = samples.reshape(5, 6, envs, 3)
    statistics, normalized = update(jnp.asarray(pieces), jnp.asarray(flat))
    np.testing.assert_allclose(statistics.mean, flat.mean(0), rtol=1e-10)
    np.testing.assert_allclose(statistics.variance, flat.var(0), rtol=1e-10)
    np.testing.assert_allclose(np.std(normalized, 0), 1, rtol=1e-5)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_samples_that_do_not_count_change_nothing(share):
    rng = np.random.default_rng(1)
    samples = rng.normal(size=(20, 3, 2)) * 4 + 7
    counted = rng.random((20, 3)) < share

    @jax.jit
    def update(samples, counted):
        start = RunningStatistics.init((2,))
        step = lambda now, given: (now.update(*given), None)  # noqa: E731
        return jax.lax.scan(step, start, (samples, counted))[0]

    statistics = update(jnp.asarray(samples), jnp.asarray(counted))
    assert statistics.count == counted.sum()
    among = samples[counted] if counted.any() else np.array([[-1.0, -1.0], [1.0, 1.0]])
    np.testing.assert_allclose(statistics.mean, among.mean(0), rtol=1e-10)
    np.testing.assert_allclose(statistics.variance, among.var(0), rtol=1e-10)
    unbiased = among.var(0, ddof=1) if counted.any() else 1
    np.testing.assert_allclose(statistics.of_a_sample().variance, unbiased, rtol=1e-10)


def test_what_has_not_varied_is_not_blown_up():
    """The first reward after many zeros."""
    zeros = RunningStatistics.init(()).update(jnp.zeros((8, 4)))
    np.testing.assert_allclose(zeros.scale(jnp.array([4.0, -0.1])), [4.0, -0.1], rtol=1e-6)
    one = RunningStatistics.init(()).update(jnp.array([3.0]))
    np.testing.assert_allclose(one.scale(jnp.float32(3.0)), 3.0, rtol=1e-6)


@pytest.mark.parametrize("shape", [(3,), (200, 8)])
def test_equal_samples_have_not_varied_however_their_mean_rounds(float32, shape):
    """Rewards of -0.1 became -1000: the mean of three is not quite -0.1."""
    samples = np.full(shape, -0.1, np.float32)

    @jax.jit
    def twice(samples, counted):
        once = RunningStatistics.init(()).update(samples)
        return once, once.update(samples, counted)

    for found in twice(samples, np.arange(samples.size).reshape(shape) % 2 == 0):
        assert found.mean == samples.flat[0] and found.variance == 0
        scaled = found.of_a_sample().scale(jnp.float32(-0.1))
        np.testing.assert_allclose(scaled, -0.1, rtol=1e-6)


def test_a_rare_reward_is_as_large_as_it_is_rare():
    """The first reward, after n - 1 steps without one, is √n: nothing is clipped."""
    scaling = Scaling.init(None, observations=False, rewards=True)

    def step(loop, reward):
        scaling, discounted = loop
        begin = jnp.zeros(1, bool)
        scaling, reward, discounted = scaling.reward(reward, discounted, begin, discount=0.9)
        return (scaling, discounted), reward

    rewards = jnp.zeros((400, 1)).at[-1].set(3.0)
    _, scaled = jax.lax.scan(step, (scaling, jnp.zeros(1)), rewards)
    np.testing.assert_allclose(scaled[:, 0], [0] * 399 + [20], atol=1e-5)


def test_single_samples_count_after_millions_of_them(float32):
    """A mean and a variance that change are followed, and those that stay keep their variance."""
    before = RunningStatistics(*(jnp.float32(x) for x in (2.0, 1.0, 2.0**24)))
    draws = 2 + jnp.sqrt(3) * jax.random.uniform(jax.random.key(0), (2**20,), minval=-1, maxval=1)

    @jax.jit
    def after(samples):
        step = lambda statistics, sample: (statistics.update(sample), None)  # noqa: E731
        return jax.lax.scan(step, before, samples)[0]

    same, moved = after(draws), after(draws + 1)
    np.testing.assert_allclose((same.mean, same.variance), (2, 1), atol=0.02)
    # After as many updates as count, the old has a weight of 1/e.
    share = 1 - np.exp(-1)
    expected = 2 + share, 1 + share * (1 - share)
    np.testing.assert_allclose((moved.mean, moved.variance), expected, atol=0.02)


# Segments and minibatches


def test_segments_are_contiguous_and_ordered_as_their_starts():
    time, envs, length = 12, 3, 4
    rollout = jnp.arange(time * envs).reshape(time, envs)
    segments = to_segments({"a": rollout, "b": jnp.zeros((time, envs, 5))}, length)
    assert segments["b"].shape == (length, 9, 5)
    jax.tree.map(np.testing.assert_array_equal, from_segments(segments["a"], envs), rollout)
    segments = segments["a"]
    assert segments.shape == (length, time // length * envs)
    np.testing.assert_array_equal(segments[0], to_starts(rollout[::length]))
    for i in range(time // length):
        for env in range(envs):
            expected = rollout[i * length : (i + 1) * length, env]
            np.testing.assert_array_equal(segments[:, env * (time // length) + i], expected)
    with pytest.raises(ValueError, match=r"`rollout` \(time 12\) must be divisible .* \(=5\)"):
        to_segments(rollout, 5)
    with pytest.raises(ValueError, match=r"`length` \(=0\) must be a whole number of at least 1"):
        to_segments(rollout, 0)


@pytest.mark.parametrize(
    "envs, groups",
    [
        pytest.param(1, 1, id="one environment"),
        pytest.param(6, 6, id="as many segments as minibatches"),
        pytest.param(4, 2, id="fewer of two environments"),
        pytest.param(24, 6, id="one segment"),
    ],
)
def test_minibatches_hold_every_segment_once_and_as_many_of_every_group(envs, groups):
    draw = jax.jit(lambda key: minibatch_indices(key, 24, 4, envs=envs))
    indices = jax.device_get(draw(jax.random.key(0)))
    assert indices.shape == (4, groups, 6 // groups)
    table = np.arange(24)
    taken = jax.device_get(jax.jit(jax.vmap(take, (None, 0)))(table, indices))
    np.testing.assert_array_equal(np.sort(taken.ravel()), table)
    assert not np.array_equal(taken.ravel(), table)
    group = np.broadcast_to(np.arange(groups)[None, :, None], indices.shape)
    np.testing.assert_array_equal(taken.reshape(indices.shape) // (24 // groups), group)
    along = jax.jit(lambda *given: take(*given, 1))(table.reshape(1, 24, 1), indices[0])
    np.testing.assert_array_equal(np.asarray(along)[0, :, 0], taken[0])
    with pytest.raises(ValueError, match=r"`minibatches` \(=5\) must divide .* \(=24 = "):
        minibatch_indices(jax.random.key(0), 24, 5, envs=envs)


def test_every_epoch_learns_from_every_segment_once_with_its_own_carry():
    """The network counts: how often each segment came, and what carry it came with."""
    segments, epochs = 12, 3
    sample = jnp.tile(jnp.arange(segments), (2, 1))

    def loss(network, sample, carry):
        seen, came = network
        value = -(seen[sample[0]].sum() + (came[sample[0]] * carry).sum())
        return value, {"ratio_error": seen.sum(), "seen": seen.sum()}

    learn = lambda key: epochs_of_minibatches(  # noqa: E731
        loss,
        optax.sgd(1.0),
        ((jnp.zeros(segments), jnp.zeros(segments)), optax.sgd(1.0).init(())),
        sample,
        lambda network, epoch: 100.0 * epoch + jnp.arange(segments),
        envs=6,
        epochs=epochs,
        minibatches=4,
        key=key,
    )
    (seen, came), _, metrics = jax.jit(learn)(jax.random.key(0))
    np.testing.assert_array_equal(seen, np.full(segments, epochs))
    np.testing.assert_array_equal(came, 300 + epochs * np.arange(segments))
    # 3 more segments have been seen after each of the 12 minibatches.
    assert metrics["seen"] == 3 * np.arange(12).mean()
    assert metrics["ratio_error"] == 0, "of the first minibatch"


@pytest.mark.parametrize("name", ["epochs", "minibatches"])
def test_no_epoch_or_minibatch_is_refused(name):
    given = {"envs": 1, "epochs": 1, "minibatches": 1, name: 0}
    with pytest.raises(ValueError, match=rf"`{name}` \(=0\) must be a whole number of at least 1"):
        epochs_of_minibatches(
            lambda *_: (0.0, {}),
            optax.sgd(1.0),
            ((), ()),
            np.ones((1, 4)),
            lambda *_: (),
            **given,
            key=jax.random.key(0),
        )


def test_every_epoch_but_the_first_learns_from_what_is_renewed():
    def loss(network, sample, carry):
        return -jnp.sum(network * sample), {"ratio_error": jnp.sum(sample)}

    optimizer = optax.sgd(1.0)
    network, _, metrics = epochs_of_minibatches(
        loss,
        optimizer,
        (jnp.ones(()), optimizer.init(())),
        jnp.ones((1, 4)),
        lambda network, epoch: 10.0 * epoch * jnp.ones(4),
        envs=4,
        epochs=3,
        minibatches=1,
        renewed=lambda network, sample, carries: sample * network + carries[None],
        key=jax.random.key(0),
    )
    # 1 + 4·1, then + 4·(5 + 10), then + 4·(65 + 20).
    assert network == 405
    assert metrics["ratio_error"] == 4, "of the first minibatch"


def test_staleness_is_the_cosine_of_the_gradients():
    def loss(network, sample, carry):
        return jnp.vdot(network["memory"], carry) + 9 * jnp.sum(network["head"] * carry[0]), {}

    network = {"memory": jnp.ones(2), "head": jnp.ones(1)}
    measure = eqx.Partial(staleness, loss, network, None, part=lambda g: g["memory"])
    assert measure(jnp.array([1.0, 0]), jnp.array([5.0, 0])) == pytest.approx(1)
    assert measure(jnp.array([1.0, 0]), jnp.array([3.0, 3])) == pytest.approx(0.5**0.5)


@pytest.mark.parametrize("steps", [3, 7, 1_000])
def test_a_falling_rate_ends_at_zero_and_not_below(steps, float32):
    rate = jax.jit(falling_rate(0.01, steps, steps_per_iteration=1))
    rates = np.asarray([rate(jnp.int32(count)) for count in (0, 1, steps, steps + 5)])
    np.testing.assert_allclose(rates, [0.01, 0.01 * (1 - 1 / steps), 0, 0], atol=1e-9, rtol=1e-6)
    assert rates.min() >= 0


@pytest.mark.parametrize(("start", "end"), [(0.2, 0.0), (0.1, 0.3)])
def test_what_moves_linearly_does_not_pass_its_end(start, end, float32):
    coefficient = jax.jit(linear(start, end, 7))
    found = np.asarray([coefficient(jnp.int32(count)) for count in (0, 7, 12)])
    np.testing.assert_allclose(found, [start, end, end], atol=1e-8, rtol=1e-6)
    low, high = np.float32([min(start, end), max(start, end)])
    assert ((low <= found) & (found <= high)).all()
