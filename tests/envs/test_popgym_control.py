"""Cart-poles and pendulums: POPGym's Python package is the oracle, from injected states."""

import operator

import jax
import numpy as np
import popgym.envs.noisy_position_only_cartpole as noisy_cartpole
import popgym.envs.noisy_position_only_pendulum as noisy_pendulum
import popgym.envs.position_only_cartpole as cartpole
import popgym.envs.position_only_pendulum as pendulum
import popgym.envs.velocity_only_cartpole as velocity_cartpole
import pytest

from agents import envs
from tests.cases import slow_but
from tests.envs.control import play, state_vector, transitions


def popgym_steps(theirs, states, times, actions):
    """Observations, rewards, flags and new states of one step from each state, flat arrays."""
    theirs.reset(seed=0)
    out = []
    for state, time, action in zip(states, times.tolist(), actions, strict=True):
        theirs.state, theirs.num_steps, theirs.steps_beyond_terminated = state, time, None
        out.append((*theirs.step(action)[:4], theirs.state))
    return tuple(map(np.asarray, zip(*out, strict=True)))


def popgym_episode(theirs, state, actions):
    """The same along one episode: the oracle's own states, from its start to its end."""
    theirs.reset(seed=0)
    theirs.state, out = state, []
    for action in actions:
        out.append((*theirs.step(action)[:4], theirs.state))
        if out[-1][2] or out[-1][3]:
            break
    return tuple(map(np.asarray, zip(*out, strict=True)))


def difference(env, states, expected):
    """Ours less theirs; the angle of a pendulum counts up to full turns."""
    delta = states - expected
    if isinstance(env, envs.Pendulum):
        delta[..., 0] = (delta[..., 0] + np.pi) % (2 * np.pi) - np.pi
    return delta


first_of = operator.itemgetter(0)
LEVELS = [
    (f"{name}{level}", getattr(module, f"{name}{level}"))
    for name, module in (
        ("PositionOnlyCartPole", cartpole),
        ("VelocityOnlyCartPole", velocity_cartpole),
        ("NoisyPositionOnlyCartPole", noisy_cartpole),
        ("PositionOnlyPendulum", pendulum),
        ("NoisyPositionOnlyPendulum", noisy_pendulum),
    )
    for level in ("Easy", "Medium", "Hard")
]
FREE = [
    (
        "PositionOnlyCartPole",
        {"max_episode_length": 33},
        lambda: cartpole.PositionOnlyCartPole(max_episode_length=33),
    ),
    (
        "NoisyPositionOnlyCartPole",
        {"max_episode_length": 33, "noise_sigma": 0.0},
        lambda: noisy_cartpole.NoisyPositionOnlyCartPole(max_episode_length=33, noise_sigma=0.0),
    ),
    (
        "NoisyPositionOnlyPendulum",
        {"max_episode_length": 33, "noise_sigma": 0.0},
        lambda: noisy_pendulum.NoisyPositionOnlyPendulum(max_episode_length=33, noise_sigma=0.0),
    ),
]
every_oracle = pytest.mark.parametrize(
    ("name", "options", "oracle"),
    slow_but(
        ["NoisyPositionOnlyCartPoleEasy", "NoisyPositionOnlyPendulumEasy"],
        [*((name, {}, oracle) for name, oracle in LEVELS if name.endswith("Easy")), *FREE],
        first_of,
    ),
)


@pytest.mark.parametrize(("name", "oracle"), LEVELS, ids=[name for name, _ in LEVELS])
def test_a_level_differs_in_its_length_and_its_noise_only(name, oracle):
    (env, params), theirs = envs.make(name), oracle()
    assert envs.episode_steps(env, params) == theirs.max_episode_length
    sigmas = getattr(env, "noise_sigma", 0.0), getattr(theirs, "noise_sigma", 0.0)
    np.testing.assert_allclose(*sigmas, rtol=0)
    same, _ = envs.make(name.removesuffix("Medium").removesuffix("Hard").removesuffix("Easy"))
    assert type(env) is type(same)


@pytest.mark.slow
@every_oracle
def test_same_steps_as_popgym(name, options, oracle):
    """Every step of whole episodes and beyond their end, each from our state before it."""
    env, params = envs.make(name, **options)
    theirs = oracle()
    steps = theirs.max_episode_length
    assert envs.episode_steps(env, params) == steps
    # A short episode without many random pushes would never end by a fall.
    _, record = play(env, 0.3 if steps >= 100 else 0.9, steps + 20)
    seeds = 50
    before, action, after, seen, reward, terminated, truncated = jax.tree.map(
        lambda x: x[:seeds], record
    )
    flat = seeds * (steps + 20)
    states = state_vector(env, before).reshape(flat, -1)
    actions = action.reshape(flat, *action.shape[2:])
    expected = popgym_steps(theirs, states, before.time.reshape(flat), actions)
    np.testing.assert_array_equal(terminated.reshape(flat), expected[2])
    np.testing.assert_array_equal(truncated.reshape(flat), expected[3])
    np.testing.assert_allclose(reward.reshape(flat), expected[1], rtol=0, atol=1e-7)
    if not getattr(env, "noise_sigma", 0.0):
        np.testing.assert_allclose(seen.reshape(flat, 2), expected[0], rtol=0, atol=1e-5)
    going_on = ~(expected[2] | expected[3])
    delta = difference(env, state_vector(env, after).reshape(flat, -1), expected[4])
    assert np.abs(delta[going_on]).max() < 1e-5
    assert truncated.any()
    assert terminated.any() == isinstance(env, envs.CartPole)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("PositionOnlyCartPole", cartpole.PositionOnlyCartPole),
        ("VelocityOnlyCartPole", velocity_cartpole.VelocityOnlyCartPole),
        ("PositionOnlyPendulum", pendulum.PositionOnlyPendulum),
    ],
)
def test_same_episodes_as_popgym(name, oracle):
    """Only the first state and the actions are given; each goes its own way for an episode.

    A falling pole multiplies any difference by e every 12 steps, so float32 and float64 agree to
    1e-5 for 50 steps. A pendulum that hangs does so for a whole episode.
    """
    env, params = envs.make(name)
    theirs = oracle()
    _, record = play(env, 1.0, envs.episode_steps(env, params), env.num_actions == 1)
    before, action, _, seen, reward, terminated, truncated = record
    lengths = []
    for seed, start in enumerate(state_vector(env, before)[:, 0]):
        expected = popgym_episode(theirs, start, action[seed])
        lengths.append(len(expected[0]))
        so_far = seed, slice(lengths[-1])
        stable = 50 if env.num_actions == 2 else lengths[-1]
        delta = (seen[so_far] - expected[0])[:stable]
        np.testing.assert_allclose(delta, 0, rtol=0, atol=1e-5)
        np.testing.assert_allclose(reward[so_far], expected[1], rtol=0, atol=1e-6)
        np.testing.assert_array_equal(terminated[so_far], expected[2])
        np.testing.assert_array_equal(truncated[so_far], expected[3])
    assert max(lengths) > 50


NOISES = [
    ("NoisyPositionOnlyCartPoleEasy", noisy_cartpole.NoisyPositionOnlyCartPoleEasy),
    ("NoisyPositionOnlyCartPoleMedium", noisy_cartpole.NoisyPositionOnlyCartPoleMedium),
    ("NoisyPositionOnlyCartPoleHard", noisy_cartpole.NoisyPositionOnlyCartPoleHard),
    ("NoisyPositionOnlyPendulumEasy", noisy_pendulum.NoisyPositionOnlyPendulumEasy),
    ("NoisyPositionOnlyPendulumMedium", noisy_pendulum.NoisyPositionOnlyPendulumMedium),
    ("NoisyPositionOnlyPendulumHard", noisy_pendulum.NoisyPositionOnlyPendulumHard),
]


def noiseless(env, state):
    parts = np.asarray(state.angle), np.asarray(getattr(state, "position", 0.0))
    if isinstance(env, envs.CartPole):
        return np.stack([parts[1], parts[0]], axis=1)
    return np.stack([np.cos(parts[0]), np.sin(parts[0])], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "oracle"), NOISES)
def test_noise_has_the_distribution_of_popgyms(name, oracle):
    """At resets and at steps; Kolmogorov-Smirnov for two samples, and the standard deviation."""
    env, params = envs.make(name)
    theirs, n = oracle(), 5000
    theirs.reset(seed=3)
    space = theirs.observation_space
    ours = env.observation_space(params)
    np.testing.assert_array_equal(np.broadcast_to(ours.low, 2), space.low)
    np.testing.assert_array_equal(np.broadcast_to(ours.high, 2), space.high)
    for state, observation in transitions(env, n):
        clean = noiseless(env, state)
        expected = np.stack([theirs.add_noise_to_obs(row) for row in clean])
        assert (observation >= space.low).all() and (observation <= space.high).all()
        for i in range(2):
            both = np.sort(observation[:, i]), np.sort(expected[:, i])
            grid = np.concatenate(both)
            # Both below and up to a value, because clipping puts many at one.
            for side in ("left", "right"):
                one, other = (np.searchsorted(sample, grid, side=side) / n for sample in both)
                assert np.abs(one - other).max() < 2.7 * np.sqrt(2 / n)  # one in a million
        noise, expected = observation - clean, expected - clean
        ratio = noise.std(axis=0) / expected.std(axis=0)
        np.testing.assert_allclose(ratio, 1, rtol=0, atol=5 / np.sqrt(n))
        assert abs(np.corrcoef(noise.T)[0, 1] - np.corrcoef(expected.T)[0, 1]) < 7 / np.sqrt(n)
