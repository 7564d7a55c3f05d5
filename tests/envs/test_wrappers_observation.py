"""Wrappers that change or spoil an observation, against the environment without them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from agents.envs import wrappers
from tests.envs.walk import Record, Walk, check, check_rest, plain, record


def check_each(wrapper, base: Record, function):
    """A wrapper without memory shows `function` of every observation."""
    r = record(wrapper)
    check_rest(r, base)
    check(
        r,
        function(base.first),
        function(base.observation),
        function(base.info["final_observation"]),
    )


def test_mask():
    env = wrappers.Mask(Walk(), keep=(2, 0))
    check_each(env, plain(), lambda x: x[..., [2, 0]])
    assert env.observation_space().shape == (2,)


@pytest.mark.slow
def test_mask_of_several_discrete_numbers():
    class Pair(Walk):
        def observation_space(self, params):
            return envs.MultiDiscrete([2, 5, 3])

        def show(self, position):
            return jnp.asarray([1, 4, 2], jnp.int32)

    env = wrappers.Mask(Pair(), keep=[1])
    assert env.observation_space().nvec == (5,)
    np.testing.assert_array_equal(env.reset(jax.random.key(0))[0], [4])


@pytest.mark.slow
def test_hide():
    hidden = np.zeros((2, 3, 1), bool)
    hidden[1, :2] = True
    env = wrappers.Hide(Walk("frame"), hidden)
    check_each(env, plain("frame"), lambda x: np.where(hidden, 0, x))
    assert not np.any(env.observation_space().high[hidden])


@pytest.mark.slow
def test_flatten_a_frame():
    env = wrappers.Flatten(Walk("frame"))
    check_each(env, plain("frame"), lambda x: x.reshape(*x.shape[:-3], 6))
    assert env.observation_space().shape == (6,)


@pytest.mark.slow
def test_flatten_parts():
    env = wrappers.Flatten(Walk("parts"))

    def function(x):
        return np.concatenate([np.eye(2)[x["sign"]], x["at"]], axis=-1)

    check_each(env, plain("parts"), function)


@pytest.mark.slow
def test_one_hot():
    inside, _ = envs.make("RepeatPrevious")
    env, base, r = wrappers.OneHot(inside), record(inside), record(wrappers.OneHot(inside))
    check_rest(r, base)
    eye = np.eye(4)
    np.testing.assert_array_equal(r.observation, eye[base.observation])
    final = r.info["final_observation"]
    np.testing.assert_array_equal(final, eye[base.info["final_observation"]])
    assert env.observation_space().shape == (4,)


@pytest.mark.slow
def test_one_hot_of_several_discrete_numbers():
    class Pair(Walk):
        def observation_space(self, params):
            return envs.MultiDiscrete([2, 3])

        def show(self, position):
            return jnp.asarray([1, 2], jnp.int32)

    observation, _ = wrappers.OneHot(Pair()).reset(jax.random.key(0))
    np.testing.assert_array_equal(observation, [0, 1, 0, 0, 1])


@pytest.mark.slow
def test_noise():
    scale = np.array([0, 0.5, 2], np.float32)
    r, base = record(wrappers.Noise(Walk(), scale)), plain(splits=1)
    check_rest(r, base)
    done = base.terminated | base.truncated
    noise = r.observation - base.observation
    final_noise = r.info["final_observation"] - base.info["final_observation"]
    # Without an end there is one observation, at an end there are two.
    np.testing.assert_allclose(noise[~done], final_noise[~done], atol=1e-6)
    assert (noise[done] != final_noise[done])[:, 1:].all()
    assert (noise[..., 0] == 0).all()
    samples = np.concatenate([noise[..., 1:].reshape(-1, 2), final_noise[done][:, 1:]]) / scale[1:]
    assert len(np.unique(samples)) == samples.size
    # Five standard errors of mean, standard deviation and correlation.
    n = len(samples)
    np.testing.assert_allclose(samples.mean(0), 0, atol=5 / np.sqrt(n))
    np.testing.assert_allclose(samples.std(0), 1, atol=5 / np.sqrt(2 * n))
    assert abs(np.corrcoef(samples.T)[0, 1]) < 5 / np.sqrt(n)


@pytest.mark.slow
def test_two_wrappers_draw_independently():
    one, both = (
        record(wrappers.Noise(Walk(), 1.0)),
        record(wrappers.Noise(wrappers.Noise(Walk(), 1.0), 1.0)),
    )
    outer = one.observation - plain(splits=1).observation
    total = both.observation - plain(splits=2).observation
    inner = total - outer  # the outer one of two has the key of a single one
    correlation = np.corrcoef(outer.ravel(), inner.ravel())[0, 1]
    assert abs(correlation) < 5 / np.sqrt(outer.size)


@pytest.mark.quick_rows(2)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: wrappers.FrameStack(env, 2),
        lambda env: wrappers.Flicker(env, 0.5),
        lambda env: wrappers.Hide(env, np.arange(6).reshape(2, 3, 1) > 2),
        lambda env: wrappers.Noise(env, 0.1),
        wrappers.NormalizeObservation,
        wrappers.Flatten,
    ],
    ids=["FrameStack", "Flicker", "Hide", "Noise", "NormalizeObservation", "Flatten"],
)
def test_bytes_are_of_the_type_that_the_space_says(wrap):
    env = wrap(Walk("bytes"))
    observation, state = jax.eval_shape(env.reset, jax.random.key(0))
    later, *_, info = jax.eval_shape(env.step, jax.random.key(1), state, 1)
    space = env.observation_space()
    for shown in (observation, later, info["final_observation"]):
        assert shown.shape == space.shape and shown.dtype == space.dtype


@pytest.mark.slow
def test_flicker():
    r, base = record(wrappers.Flicker(Walk("frame"), 0.3)), plain("frame", splits=1)
    check_rest(r, base)
    done = base.terminated | base.truncated
    lost = (r.observation == 0).all(axis=(2, 3, 4))
    final_lost = (r.info["final_observation"] == 0).all(axis=(2, 3, 4))
    shape = (..., None, None, None)
    np.testing.assert_array_equal(r.observation, np.where(lost[shape], 0, base.observation))
    final = base.info["final_observation"]
    np.testing.assert_array_equal(
        r.info["final_observation"], np.where(final_lost[shape], 0, final)
    )
    np.testing.assert_array_equal(lost[~done], final_lost[~done])
    assert (lost != final_lost)[done].any()
    samples = np.concatenate([lost.ravel(), final_lost[done]])
    assert abs(samples.mean() - 0.3) < 5 * np.sqrt(0.21 / len(samples))


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(("probability", "lost"), [(0.0, False), (1.0, True)])
def test_flicker_never_and_always(probability, lost):
    env = wrappers.Flicker(Walk(), probability)
    for seed in range(5):
        observation, _ = env.reset(jax.random.key(seed))
        assert bool(jnp.all(observation == 0)) == lost
