"""brax itself is the oracle: the same state and actions, the same everything else."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from agents.__main__ import main
from agents.envs.bridges import brax_env
from agents.envs.bridges.adapter import gymnax_settings
from agents.envs.bridges.brax_env import LAYOUTS, BraxEnvironment

STEPS, SEEDS, POOL = 25, 8, 8


def played(env_name):
    """First observations, and the observations, rewards and ends of every step: ours and brax's.

    brax takes each step from the physical state that ours has, and keeps everything else that it
    carries by itself: contacts amplify a difference in rounding a thousandfold in ten steps.
    """
    env = BraxEnvironment(env_name, pool_size=POOL)
    params = env.default_params
    keys = jax.random.split(jax.random.key(8), SEEDS)
    first, state = jax.jit(jax.vmap(env.reset, (0, None)))(keys, params)
    our_step = jax.jit(jax.vmap(env.step_env, (0, 0, 0, None)))
    sample = jax.jit(jax.vmap(env.action_space(params).sample))
    records = [], []
    with brax_env._brax_settings():
        index = jax.vmap(lambda key: jax.random.bits(key, dtype=jnp.uint32))(keys) % POOL
        reset_keys = jax.random.split(jax.random.key(0), POOL)[index]
        brax_state = jax.jit(jax.vmap(env.brax.reset))(reset_keys)
        brax_step = jax.jit(jax.vmap(env.brax.step))
        brax_first = brax_state.obs
    for t in range(STEPS):
        action = sample(jax.random.split(jax.random.key(t), SEEDS))
        with brax_env._brax_settings():
            before = brax_state.replace(pipeline_state=state.pipeline_state)
            brax_state = brax_step(before, action)
        observation, state, reward, terminated, _ = our_step(keys, state, action, params)
        records[0].append((observation, reward, terminated))
        records[1].append((brax_state.obs, brax_state.reward, brax_state.done > 0.5))
    ours, theirs = ([np.stack(x) for x in zip(*record, strict=True)] for record in records)
    return (first, *ours), (brax_first, *theirs)


# Of the bodies the one of which brax computes all that it does of any: contacts, and what only
# the humanoids show.
@pytest.mark.slow
def test_steps_equal_those_of_brax():
    ours, theirs = played("humanoid")
    for a, b in zip(ours, theirs, strict=True):
        # Some angles are an arc cosine in float32, whose values next to zero are 0, 3.5e-4 and
        # 4.9e-4.
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=5e-4)
    _, observation, reward, _ = ours
    assert observation.dtype == reward.dtype == np.float32
    assert observation.shape == (STEPS, SEEDS, LAYOUTS["humanoid"].size)
    assert np.abs(np.diff(observation, axis=0)).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["spring", "positional", "generalized", "mjx"])
def test_a_backend_is_that_of_brax(backend):
    assert BraxEnvironment("inverted_pendulum", backend=backend).brax.backend == backend


# Written out here a second time, component by component.
COLUMNS = {
    "ant": (range(13), range(13, 27)),
    "halfcheetah": (range(8), range(8, 17)),
    "hopper": (range(5), range(5, 11)),
    "walker2d": (range(8), range(8, 17)),
    "humanoid": ([*range(22), *range(45, 155)], [*range(22, 45), *range(155, 221)]),
    "humanoidstandup": ([*range(22), *range(45, 155)], [*range(22, 45), *range(155, 221)]),
    "inverted_pendulum": ([0, 1], [2, 3]),
    "inverted_double_pendulum": (range(5), range(5, 8)),
    "reacher": ([0, 1, 2, 3, 4, 5, 8, 9, 10], [6, 7]),
    "pusher": ([*range(7), *range(14, 23)], range(7, 14)),
}


@pytest.mark.slow
def test_what_is_shown_of_every_environment():
    """Without physics: the columns of a vector that counts."""
    for env_name, columns in COLUMNS.items():
        full = np.arange(LAYOUTS[env_name].size, dtype=np.float32)
        for observe, shown in zip(("positions", "velocities"), columns, strict=True):
            env = BraxEnvironment(env_name, observe)
            np.testing.assert_array_equal(env._show(full, jnp.int32(3)), shown)
            assert env.observation_space().shape == (len(shown),)
        np.testing.assert_array_equal(BraxEnvironment(env_name)._show(full, jnp.int32(3)), full)


@pytest.mark.slow
def test_resets_and_steps_show_positions_or_velocities():
    full = envs.make("brax/inverted_pendulum")[0]
    key, action = jax.random.key(0), jnp.ones(1, jnp.float32)
    first, state = full.reset(key)
    observation = jax.jit(full.step)(key, state, action)[0]
    for suffix, columns in (("P", slice(2)), ("V", slice(2, 4))):
        env, params = envs.make(f"brax/inverted_pendulum-{suffix}")
        np.testing.assert_array_equal(env.reset(key, params)[0], first[columns])
        seen = jax.jit(env.step)(key, state, action, params)[0]
        np.testing.assert_array_equal(seen, observation[columns])


@pytest.mark.slow
def test_the_reachers_target_is_shown_once():
    env = BraxEnvironment("reacher", "target_once")
    full = np.arange(1, 12, dtype=np.float32)
    np.testing.assert_array_equal(env._show(full, jnp.int32(0)), full)
    later = [1, 2, 3, 4, 0, 0, 7, 8, 0, 0, 0]
    for time in (1, 2, 999):
        np.testing.assert_array_equal(env._show(full, jnp.int32(time)), later)
    assert env.name == "brax/reacher-pomdp"
    assert env.observation_space().shape == (11,)


@pytest.mark.slow
def test_an_episode_of_the_reacher_with_a_target_that_is_shown_once():
    env, params = envs.make("brax/reacher-pomdp", max_steps_in_episode=4)
    step = jax.jit(env.step)
    observation, state = env.reset(jax.random.key(0), params)
    targets = []
    for t in range(12):
        assert np.any(observation[4:6]) == (t % 4 == 0)
        assert np.any(observation[8:11]) == (t % 4 == 0)
        assert np.any(observation[:4])
        if t % 4 == 0:
            targets.append(tuple(np.asarray(observation[4:6])))
        action = jnp.ones(2, jnp.float32)
        observation, state, *_, info = step(jax.random.key(t), state, action, params)
        assert not np.any(info["final_observation"][np.array([4, 5, 8, 9, 10])])
    assert len(set(targets)) == 3


def initial_observations(env, params, count):
    reset = jax.jit(jax.vmap(env.reset, (0, None)))
    return np.asarray(reset(jax.random.split(jax.random.key(1), count), params)[0])


@pytest.mark.slow
def test_initial_states_have_the_distribution_of_brax():
    env = BraxEnvironment("inverted_pendulum")
    found, counts = np.unique(
        initial_observations(env, env.default_params, 8192), axis=0, return_counts=True
    )
    # Of 1024 states 8192 draws leave out 0.3; each is drawn 8 times, and chi-square is the test.
    assert 1020 <= len(found) <= 1024
    chi_square = ((counts - 8) ** 2 / 8).sum() + 8 * (1024 - len(found))
    assert abs(chi_square - 1023) < 5 * np.sqrt(2 * 1023)
    # brax: uniform in ±0.01. Five standard errors of mean and variance.
    n = len(found)
    assert np.abs(found).max() < 0.01
    np.testing.assert_allclose(found.mean(0), 0, atol=5 * 0.01 / np.sqrt(3 * n))
    np.testing.assert_allclose(found.var(0), 1e-4 / 3, atol=5e-4 * np.sqrt(4 / 45 / n))
    rows = np.corrcoef(found.T) - np.eye(4)
    assert np.abs(rows).max() < 5 / np.sqrt(n)


@pytest.mark.slow
def test_other_initial_states_are_used():
    env = BraxEnvironment("inverted_pendulum")
    pool = env.draw_initial_states(jax.random.key(3), 2)
    params = env.default_params.replace(initial_states=pool)
    found = np.unique(initial_observations(env, params, 50), axis=0)
    np.testing.assert_array_equal(found, np.unique(np.asarray(pool[0]), axis=0))
    other = BraxEnvironment("inverted_double_pendulum").draw_initial_states(jax.random.key(3), 2)
    with pytest.raises(ValueError, match=r"`initial_states` \(of shapes \(\(2, 8\), State"):
        env.reset(jax.random.key(0), params.replace(initial_states=other))


@pytest.mark.slow
def test_without_a_pool_a_reset_is_one_of_brax():
    env, params = envs.make("brax/inverted_pendulum", pool_size=0)
    key = jax.random.key(4)
    observation, state = jax.jit(env.reset)(key, params)
    with gymnax_settings():
        expected = jax.jit(env.brax.reset)(key)
    np.testing.assert_allclose(observation, expected.obs, rtol=1e-6)
    for ours, brax in zip(
        jax.tree.leaves(state.pipeline_state), jax.tree.leaves(expected.pipeline_state), strict=True
    ):
        np.testing.assert_allclose(ours, brax, rtol=1e-5, atol=1e-6)


def test_names_and_spaces_do_not_import_brax(monkeypatch):
    def fail(*_):
        raise AssertionError("brax was imported")

    monkeypatch.setattr(brax_env, "_brax", fail)
    monkeypatch.setattr(brax_env, "_pool", fail)
    found = [name for name in envs.names() if name.startswith("brax/")]
    assert len(found) == 3 * len(LAYOUTS) + 1
    for name in found:
        env, params = envs.make(name)
        assert env.name == name
        assert env.action_space(params).shape == (env.num_actions,)
        assert envs.episode_steps(env, params) == 1000


@pytest.mark.slow
@pytest.mark.parametrize("env_name", LAYOUTS)
def test_the_layout_is_that_of_brax(env_name):
    env = BraxEnvironment(env_name)
    assert env.brax.action_size == env.num_actions
    with brax_env._brax_settings():
        state = jax.eval_shape(env.brax.reset, jax.random.key(0))
    assert state.obs.shape == (LAYOUTS[env_name].size,)


def test_a_missing_package_is_named(monkeypatch, capsys):
    monkeypatch.setattr(brax_env.importlib.util, "find_spec", lambda name: None)
    message = r"brax/ant needs the package brax: pip install 'trace-zoo\[brax\]'"
    with pytest.raises(ModuleNotFoundError, match=message):
        envs.make("brax/ant-P")
    assert "brax/ant-P" in envs.names()
    assert main(["envs", "--filter", "brax/ant-P"]) == 0
    listed = re.sub(r"[│–\s]", "", capsys.readouterr().out)
    assert "pipinstall'trace-zoo[brax]'" in listed


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"env_name": "swimmer"}, ValueError, r"`env_name` \(='swimmer'\) must be one of: ant, "),
        ({"observe": "half"}, ValueError, r"`observe` \(='half'\) must be one of: all, positions,"),
        ({"env_name": ["ant"]}, ValueError, r"`env_name` \(=\['ant'\]\) must be one of: ant, "),
        ({"observe": ["all"]}, ValueError, r"`observe` \(=\['all'\]\) must be one of: all, "),
        ({"backend": "fast"}, ValueError, r"`backend` \(='fast'\) must be one of: spring, posit"),
        (
            {"env_name": "ant", "observe": "target_once"},
            ValueError,
            r"`observe` \(='target_once'\) must be another one for ant",
        ),
        (
            {"pool_size": -1},
            ValueError,
            r"`pool_size` \(=-1\) must be a whole number of at least 0\.",
        ),
    ],
)
def test_arguments_that_break_a_rule(arguments, error, message, unhooked):
    with pytest.raises(error, match=message):
        BraxEnvironment(**arguments)


def test_keys_and_actions_that_are_none(unhooked):
    env = BraxEnvironment("ant")
    with pytest.raises(TypeError, match=r"`key` \(=0\) must be a PRNG key, such as"):
        env.draw_initial_states(0, 3)
    for shape in ((), (1,), (8, 1)):
        message = re.escape(f"`action` (shape {shape}) must have the shape of `action_space`, (8,)")
        with pytest.raises(ValueError, match=message):
            env.step_env(jax.random.key(0), None, np.zeros(shape), env.default_params)


def test_options():
    env, params = envs.make("brax/hopper-V", backend="mjx", pool_size=8, max_steps_in_episode=20)
    assert (env.backend, env.pool_size, envs.episode_steps(env, params)) == ("mjx", 8, 20)
    message = r"Unknown option `env_name` .*: backend, initial_states, max_steps_in_ep.*, pool_size"
    with pytest.raises(ValueError, match=message):
        envs.make("brax/hopper", env_name="ant")
    with pytest.raises(TypeError, match=r"`pool_size` \(=1\.5\) must be a whole number"):
        envs.make("brax/hopper", pool_size=1.5)
