"""Wrappers that remember within or beyond an episode, against a plain loop over its steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from agents.envs import wrappers
from agents.envs.core.statistics import RunningStatistics
from tests.cases import slow_but
from tests.envs.walk import ENVS, STEPS, Record, Walk, check, check_rest, plain, record


def episodes(base: Record, first, following):
    """Expected first, observation and final observation by a loop over the steps.

    `first(observation)` and `following(kept, observation, action, reward)` return what is shown
    and what is kept.
    """
    shown = []
    for e in range(ENVS):
        out, kept = first(base.first[e])
        shown_first, observations, finals = out, [], []
        for t in range(STEPS):
            final, kept = following(
                kept, base.info["final_observation"][e, t], base.action[e, t], base.reward[e, t]
            )
            out = final
            if base.terminated[e, t] or base.truncated[e, t]:
                out, kept = first(base.observation[e, t])
            observations.append(out)
            finals.append(final)
        shown.append((shown_first, observations, finals))
    return [np.array(x) for x in zip(*shown, strict=True)]


@pytest.mark.parametrize("count", slow_but([3], [1, 3]))
def test_frame_stack(count):
    r, base = record(wrappers.FrameStack(Walk(), count)), plain()

    def first(observation):
        stack = [np.zeros(3)] * (count - 1) + [observation]
        return stack, stack

    def following(kept, observation, action, reward):
        stack = [*kept[1:], observation]
        return stack, stack

    check_rest(r, base)
    check(r, *episodes(base, first, following))
    begins = r.observation[base.terminated | base.truncated]
    assert (begins[:, :-1] == 0).all()
    assert (begins[:, -1] != 0).all()


@pytest.mark.parametrize("discrete", slow_but([True], [True, False]))
@pytest.mark.parametrize(
    ("action", "reward"),
    slow_but([(True, True)], [(True, True), (True, False), (False, True)]),
)
def test_previous_action_and_reward(discrete, action, reward):
    env = wrappers.PreviousActionReward(Walk(discrete=discrete), action=action, reward=reward)
    r, base = record(env), plain(discrete=discrete)

    def first(observation):
        zeros = np.zeros((3 if discrete else 2) * action + reward)
        return np.concatenate([observation, zeros]), None

    def following(kept, observation, a, rew):
        parts = [observation]
        parts += [np.eye(3)[a] if discrete else a] * action + [[rew]] * reward
        return np.concatenate(parts), None

    check_rest(r, base)
    check(r, *episodes(base, first, following))
    assert (r.observation[base.terminated | base.truncated][:, 3:] == 0).all()


def test_a_previous_action_is_within_the_space():
    env = wrappers.PreviousActionReward(Walk(discrete=False))
    params, key = env.default_params, jax.random.key(0)
    step = jax.jit(env.step)
    observation, *_ = step(key, env.reset(key, params)[1], jnp.array([5.0, -0.5]), params)
    np.testing.assert_array_equal(observation[3:5], np.float32([1.0, -0.5]))


def test_log():
    r, base = record(wrappers.Log(Walk())), plain()
    check_rest(r, base)
    check(r, base.first, base.observation, base.info["final_observation"])
    for e in range(ENVS):
        total, length = np.float32(0), 0
        for t in range(STEPS):
            total, length = total + base.reward[e, t], length + 1
            np.testing.assert_allclose(r.info["episode_return"][e, t], total, rtol=1e-6)
            assert r.info["episode_length"][e, t] == length
            if base.terminated[e, t] or base.truncated[e, t]:
                total, length = np.float32(0), 0


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("limit", slow_but([4, 50], [1, 4, 9, 50]))
def test_time_limit(limit):
    """Against a loop that steps the environment by itself and resets it where the limit is met."""
    env, inside = wrappers.TimeLimit(Walk(), limit), Walk()
    params = inside.default_params
    step, reset, ours = jax.jit(inside.step), jax.jit(inside.reset), jax.jit(env.step)
    key = jax.random.key(1)
    observation, state = reset(key, params)
    our_observation, our_state = env.reset(key, params)
    time, seen = 0, set()
    for t in range(120):
        np.testing.assert_array_equal(our_observation, observation)
        key = jax.random.key(100 + t)
        observation, state, reward, terminated, truncated, info = step(key, state, 1, params)
        time += 1
        if time >= limit and not (terminated or truncated):
            truncated = True
            observation, state = reset(jax.random.fold_in(key, 2**32 - 1), params)
        our_observation, our_state, *rest, our_info = ours(
            jax.random.key(100 + t), our_state, 1, params
        )
        assert rest == [reward, terminated, truncated]
        assert our_info["truncated"] == truncated
        np.testing.assert_array_equal(our_info["final_observation"], info["final_observation"])
        if terminated or truncated:
            seen.add((time, bool(terminated), bool(truncated)))
            time = 0
        assert our_state.time == state.time == time == our_state.own
    lengths = {length for length, _, _ in seen}
    assert max(lengths) == min(limit, 9)
    assert (limit, False, True) in seen or limit == 50
    assert any(terminated for _, terminated, _ in seen) or limit == 1
    assert envs.episode_steps(env, params) == min(limit, 9)


@pytest.mark.slow
def test_a_time_limit_does_not_truncate_what_terminates():
    env = wrappers.TimeLimit(Walk(), 3)
    params = env.default_params
    _, state = env.reset(jax.random.key(0), params)
    for position, flags in ((-9.0, (False, True)), (9.0, (True, False))):
        env_state = state.env_state.replace(position=jnp.full(3, position, jnp.float32))
        last = state.replace(env_state=env_state, own=jnp.int32(2))
        out = env.step(jax.random.key(1), last, 0, params)
        assert (bool(out[3]), bool(out[4])) == flags


def seen_by(base: Record, e: int):
    """Everything seen in one environment, and at each step how much of it was."""
    done = base.terminated[e] | base.truncated[e]
    samples, counts = [base.first[e]], []
    for t in range(STEPS):
        samples.append(base.info["final_observation"][e, t])
        at_final = len(samples)
        samples += [base.observation[e, t]] * bool(done[t])
        counts.append((at_final, len(samples)))
    return np.array(samples, np.float64), counts


def check_statistics(statistics, samples, e):
    """`statistics` at the end of a rollout are NumPy's, of each feature."""
    last = jax.tree.map(lambda x: x[e, -1], statistics)
    assert last.count == len(samples)
    np.testing.assert_allclose(last.mean, samples.mean(0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(last.variance, samples.var(0), rtol=1e-4, atol=1e-5)
    if samples.ndim > 1:  # one of each per feature
        assert len(np.unique(last.mean)) == samples[0].size


@pytest.mark.slow
@pytest.mark.parametrize("form", ["vector", "frame"])
def test_normalize_observation(form):
    r, base = record(wrappers.NormalizeObservation(Walk(form), limit=2.5)), plain(form)
    check_rest(r, base)
    for e in range(ENVS):
        samples, counts = seen_by(base, e)

        def normal(n, samples=samples):
            known = samples[:n]
            scaled = (known[-1] - known.mean(0)) / np.sqrt(known.var(0) + 1e-8)
            return np.clip(scaled, -2.5, 2.5)

        expected = [(normal(final), normal(last)) for final, last in counts]
        final, observation = (np.array(x) for x in zip(*expected, strict=True))
        np.testing.assert_array_equal(r.first[e], 0)
        np.testing.assert_allclose(r.observation[e], observation, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(r.info["final_observation"][e], final, rtol=1e-3, atol=1e-4)
        check_statistics(r.state.own, samples, e)
    assert np.abs(r.observation).max() == 2.5


@pytest.mark.slow
@pytest.mark.parametrize("outside", [True, False])
def test_statistics_outlive_the_episodes_that_a_time_limit_ends(outside):
    limited = wrappers.TimeLimit(Walk(), 4)
    if outside:
        env = wrappers.NormalizeObservation(limited)
    else:
        env = wrappers.TimeLimit(wrappers.NormalizeObservation(Walk()), 4)
    r, base = record(env), record(limited)
    check_rest(r, base)
    assert (base.truncated & (base.state.time == 0)).sum() > STEPS / 5
    for e in range(ENVS):
        samples, _ = seen_by(base, e)
        check_statistics(r.state.own if outside else r.state.env_state.own, samples, e)


@pytest.mark.slow
def test_normalize_reward():
    env = wrappers.NormalizeReward(Walk(), discount=0.9, limit=1.5)
    r, base = record(env), plain()
    check_rest(r._replace(reward=base.reward), base)
    np.testing.assert_array_equal(r.info["reward"], base.reward)
    for e in range(ENVS):
        discounted, samples = 0.0, []
        for t in range(STEPS):
            discounted = 0.9 * discounted + float(base.reward[e, t])
            samples.append(discounted)
            variance = np.var(samples) if len(samples) > 1 else 1.0
            scaled = base.reward[e, t] / np.sqrt(variance + 1e-8)
            expected = np.clip(scaled, -1.5, 1.5)
            np.testing.assert_allclose(r.reward[e, t], expected, rtol=1e-3)
            if base.terminated[e, t] or base.truncated[e, t]:
                discounted = 0.0
        check_statistics(r.state.own.statistics, np.array(samples), e)
    assert r.reward.max() == np.float32(1.5)
    assert r.reward[:, 5:].min() < 1.5


@pytest.mark.slow
def test_statistics_of_many_large_samples():
    """The update does not cancel: a mean far from zero leaves the variance right."""
    samples = 1000 + np.random.default_rng(0).normal(size=(20_000, 2)).astype(np.float32)

    def step(statistics, sample):
        return statistics.update(sample), None

    start = RunningStatistics.init((2,), np.float32)
    statistics, _ = jax.jit(lambda s: jax.lax.scan(step, start, s))(samples)
    exact = samples.astype(np.float64)
    np.testing.assert_allclose(statistics.mean, exact.mean(0), rtol=1e-5)
    np.testing.assert_allclose(statistics.variance, exact.var(0), rtol=2e-2)
    assert statistics.count == 20_000


class Precise(Walk):
    """With rewards in the session's float64, as an environment of whoever enables them."""

    def step_env(self, key, state, action, params):
        seen, state, reward, ended, info = super().step_env(key, state, action, params)
        return seen, state, reward.astype(float), ended, info


@pytest.mark.parametrize(
    "wrap", [wrappers.Log, wrappers.NormalizeReward, wrappers.PreviousActionReward]
)
def test_rewards_of_a_higher_precision_are_cast(wrap):
    env = wrap(Precise())
    key = jax.random.key(0)

    def two_steps(key):
        _, state = env.reset(key)
        after = env.step(key, state, jnp.int32(1))
        return after, env.step(key, after[1], jnp.int32(2))

    one, other = jax.eval_shape(two_steps, key)
    assert jax.tree.map(lambda x: x.dtype, one) == jax.tree.map(lambda x: x.dtype, other)
    assert one[2].dtype == jnp.float32
