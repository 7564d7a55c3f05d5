"""Cart-poles and pendulums: starts, ends, limits, and what policies are worth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from agents.envs.popgym.control.pendulum import wrap
from tests.envs.control import SEEDS, play, state_vector


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "steps", "lowest", "mean"),
    [
        ("PositionOnlyCartPoleEasy", 200, 1.0, 1.0),
        ("VelocityOnlyCartPoleHard", 600, 1.0, 1.0),
        ("NoisyPositionOnlyCartPoleHard", 200, 1.0, 1.0),
        # What is missing to 1 is the time that the swing takes, in the worst case from below.
        ("PositionOnlyPendulumEasy", 200, 0.7, 0.9),
        ("NoisyPositionOnlyPendulumHard", 200, 0.7, 0.9),
    ],
)
def test_a_controller_that_knows_the_state_has_a_return_near_one(name, steps, lowest, mean):
    env, params = envs.make(name)
    assert envs.episode_steps(env, params) == steps
    returns = np.asarray(play(env, 0.0, steps + 20)[1][4][:, :steps], np.float64).sum(axis=1)
    assert lowest - 1e-5 < returns.min() <= returns.max() < 1 + 1e-5
    assert returns.mean() > mean - 1e-5


@pytest.mark.slow
def test_a_random_policy_balances_for_a_moment():
    env, _ = envs.make("PositionOnlyCartPole")
    terminated = play(env, 1.0, 200)[1][5]
    length = terminated.argmax(axis=1) + 1
    # gymnasium's CartPole has a mean of 22.3 and a standard deviation of 11.8 under this policy.
    assert abs(length.mean() - 22.3) < 4 * 11.8 / np.sqrt(SEEDS)


@pytest.mark.slow
def test_starts():
    for name, bounds in (
        ("PositionOnlyCartPole", np.full(4, 0.05)),
        ("VelocityOnlyCartPole", np.full(4, 0.05)),
        ("PositionOnlyPendulum", np.array([np.pi, 1.0])),
    ):
        env, params = envs.make(name)
        keys = jax.random.split(jax.random.key(5), 4096)
        first, state = jax.jit(jax.vmap(env.reset, (0, None)))(keys, params)
        uniform = (state_vector(env, state) / bounds + 1) / 2
        assert 0 <= uniform.min() < 0.01
        assert 0.99 < uniform.max() <= 1 + 1e-6
        # Kolmogorov-Smirnov, at a level of one in a million.
        rank = np.arange(1, 4097)[:, None] / 4096
        assert np.abs(np.sort(uniform, axis=0) - rank).max() < 2.7 / 64
        assert np.abs(np.corrcoef(uniform.T) - np.eye(len(bounds))).max() < 5 / 64
        # The velocity-only environment too begins with positions.
        if isinstance(env, envs.CartPole):
            np.testing.assert_array_equal(first, np.stack([state.position, state.angle], axis=1))
        else:
            circle = np.stack([np.cos(state.angle), np.sin(state.angle)], axis=1)
            np.testing.assert_allclose(first, circle, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PositionOnlyCartPole", "PositionOnlyPendulum"])
def test_flags_at_the_end_and_at_a_time_limit(name):
    env, params = envs.make(name, max_episode_length=9)
    step = jax.jit(env.step)
    key = jax.random.key(0)
    action = jnp.zeros(env.action_space(params).shape, env.action_space(params).dtype)
    _, state = env.reset(key, params)
    falling = (False,)
    if isinstance(env, envs.CartPole):
        falling = (False, True)
    for falls in falling:
        angle = jnp.float32(0.25 if falls else 0.0)
        for limit, time in ((9, 7), (9, 8), (5, 3), (5, 4), (12, 8)):
            last = state.replace(time=jnp.int32(time), angle=angle)
            out = step(key, last, action, params.replace(max_steps_in_episode=limit))
            assert (bool(out[3]), bool(out[4])) == (falls, time + 1 >= limit)
            if isinstance(env, envs.CartPole):
                # A time limit of the user's does not scale the reward.
                assert abs(float(out[2]) - 1 / 9) < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize(("torque", "clipped"), [(5.0, 2.0), (-9.0, -2.0), (1.5, 1.5)])
def test_torques_are_clipped(torque, clipped):
    env, params = envs.make("PositionOnlyPendulum")
    key = jax.random.key(0)
    _, state = env.reset(key, params)
    step = jax.jit(env.step_env)
    # A scalar is the same action as a vector of one number.
    outs = [step(key, state, jnp.float32([torque]), params), step(key, state, clipped, params)]
    jax.tree.map(np.testing.assert_array_equal, *outs)


def test_an_angle_between_minus_pi_and_pi_is_not_rounded():
    angles = np.linspace(-3.14, 3.14, 1001, dtype=np.float32)
    np.testing.assert_array_equal(jax.vmap(wrap)(angles), angles)
    turned = jax.vmap(wrap)(angles + np.float32(4 * np.pi))
    np.testing.assert_allclose(turned, angles, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: envs.PositionOnlyCartPole(0),
            ValueError,
            r"`max_episode_length` \(=0\) must be a whole number of at least 1\.",
        ),
        (
            lambda: envs.make("PositionOnlyPendulum", max_episode_length=2.0),
            TypeError,
            r"`max_episode_length` \(=2\.0\) must be a whole number\.",
        ),
        (
            lambda: envs.NoisyPositionOnlyPendulum(noise_sigma=-0.1),
            ValueError,
            r"`noise_sigma` \(=-0\.1\) must be at least 0\.",
        ),
        (
            lambda: envs.make("NoisyPositionOnlyCartPole", noise_sigma=np.inf),
            ValueError,
            r"`noise_sigma` \(=inf\) must be a number, finite",
        ),
    ],
)
def test_values_that_break_a_rule(make, error, message):
    with pytest.raises(error, match=message):
        make()
