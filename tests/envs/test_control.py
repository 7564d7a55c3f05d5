"""Cart-poles and pendulums: POPGym's Python package is the oracle, from injected states."""

import functools
import operator

import jax
import jax.numpy as jnp
import numpy as np
import popgym.envs.noisy_position_only_cartpole as noisy_cartpole
import popgym.envs.noisy_position_only_pendulum as noisy_pendulum
import popgym.envs.position_only_cartpole as cartpole
import popgym.envs.position_only_pendulum as pendulum
import popgym.envs.velocity_only_cartpole as velocity_cartpole
import pytest

from agents import envs
from agents.envs.core.checks import check_number
from agents.envs.popgym.control.pendulum import wrap
from tests.cases import slow_but

SEEDS = 200

CARTPOLE = ("position", "velocity", "angle", "angular_velocity")
PENDULUM = ("angle", "angular_velocity")


def fields(env):
    return CARTPOLE if isinstance(env, envs.CartPole) else PENDULUM


def state_vector(env, state):
    return np.stack([np.asarray(getattr(state, f), np.float64) for f in fields(env)], axis=-1)


def balance(state):
    """Push to the side to which the pole leans, falls, and the cart is: it stays up for ever."""
    lean = state.angle + 0.5 * state.angular_velocity + 0.1 * state.position + 0.2 * state.velocity
    return (lean > 0).astype(jnp.int32)


def swing_up(state):
    """Add energy until there is enough to reach the top, then hold the pendulum there."""
    angle, speed = state.angle, state.angular_velocity
    energy = speed**2 / 6 + 5 * (jnp.cos(angle) - 1)  # 0 at rest on top, for a rod of 1 m and 1 kg
    pump = jnp.where((energy < 0) == (speed >= 0), 2.0, -2.0)
    hold = -16 * angle - 4 * speed
    near = (jnp.abs(angle) < 0.4) & (jnp.abs(speed) < 3)
    return jnp.where(near, hold, pump).astype(jnp.float32)[None].clip(-2, 2)


def good_action(env, state):
    return balance(state) if isinstance(env, envs.CartPole) else swing_up(state)


@functools.cache
def play(env, randomness, steps, hanging=False):
    """Reset observations and states, and the record of `steps` steps, `[seed, time]`, in NumPy.

    Actions are random with probability `randomness`, otherwise good. A pendulum that begins
    `hanging` does not reach the top, from where any difference would grow.
    """
    return jax.device_get(_play(env, randomness, steps, hanging))


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _play(env, randomness, steps, hanging):
    params = env.default_params

    def step(state, key):
        key_random, key_action, key_step = jax.random.split(key, 3)
        action = jnp.where(
            jax.random.bernoulli(key_random, randomness),
            env.action_space(params).sample(key_action),
            good_action(env, state),
        )
        _, after, reward, terminated, truncated, info = env.step(key_step, state, action, params)
        seen = info["final_observation"]
        return after, (state, action, after, seen, reward, terminated, truncated)

    def episode(key):
        key_reset, key_steps = jax.random.split(key)
        first = env.reset(key_reset, params)
        start = first[1]
        if hanging:
            start = start.replace(angle=wrap(np.pi + start.angle / 10))
        return first, jax.lax.scan(step, start, jax.random.split(key_steps, steps))[1]

    return jax.vmap(episode)(jax.random.split(jax.random.key(11), SEEDS))


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
        [*((name, {}, oracle) for name, oracle in LEVELS), *FREE],
        first_of,
    ),
)


@pytest.mark.quick_rows(1)
@every_oracle
def test_same_steps_as_popgym(name, options, oracle):
    """Every step of whole episodes and beyond their end, each from our state before it."""
    env, params = envs.make(name, **options)
    theirs = oracle()
    steps = theirs.max_episode_length
    assert envs.episode_steps(env, params) == steps
    # A short episode without many random pushes would never end by a fall.
    _, record = play(env, 0.3 if steps >= 100 else 0.9, steps + 20)
    # A level differs from another one in its length only: few episodes of those but one.
    seeds = 50 if options or name.endswith("Easy") else 8
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
    theirs, n = oracle(), 20000
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


@functools.partial(jax.jit, static_argnums=(0, 1))
def _transitions(env, n):
    params = env.default_params
    keys = jax.random.split(jax.random.key(6), (2, n))
    first, state = jax.vmap(env.reset, (0, None))(keys[0], params)
    space = env.action_space(params)
    action = jnp.ones(space.shape, space.dtype)
    step = jax.vmap(env.step_env, (0, 0, None, None))
    seen, after, *_ = step(keys[1], state, action, params)
    return (state, first), (after, seen)


@functools.cache
def transitions(env, n):
    """`(state, observation)` of `n` resets, and of one step after each."""
    return jax.device_get(_transitions(env, n))


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
            r"`max_episode_length` \(=0\) must be at least 1\.",
        ),
        (
            lambda: envs.make("PositionOnlyPendulum", max_episode_length=2.0),
            TypeError,
            r"`max_episode_length` \(=2\.0\) must be an integer\.",
        ),
        (
            lambda: envs.NoisyPositionOnlyPendulum(noise_sigma=-0.1),
            ValueError,
            r"`noise_sigma` \(=-0\.1\) must be finite and at least 0\.",
        ),
        (
            lambda: envs.make("NoisyPositionOnlyCartPole", noise_sigma=np.inf),
            ValueError,
            r"`noise_sigma` \(=inf\) must be finite and at least 0\.",
        ),
        (lambda: check_number("s", "1", 0.0), TypeError, r"`s` \(='1'\) must be a number\."),
        (lambda: check_number("s", True, 0.0), TypeError, r"`s` \(=True\) must be a number\."),
    ],
)
def test_values_that_break_a_rule(make, error, message):
    with pytest.raises(error, match=message):
        make()
