"""What holds for every environment, by whatever name and from whichever package."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces

from agents import envs
from tests.envs.cases import CASES, LIMIT, Case, parametrize

ENVS, STEPS = 3, 2 * LIMIT + 2


every_case = parametrize(CASES)

# Names without a row: levels, and the same class with other options. What brax shows of its bodies
# is compared in `test_brax.py`.
ROWS = {case.name for case in CASES if not case.options}
OTHERS = [name for name in envs.names() if name not in ROWS and not name.startswith("brax/")]


class Rollout(NamedTuple):
    """A recorded rollout of random actions; arrays are `[env, time, ...]`."""

    env: Any
    params: Any
    first: Any  # what reset returned: [env, ...]
    key: Any  # of each step
    before: Any  # the state before each step
    action: Any
    observation: Any
    state: Any
    reward: Any
    terminated: Any
    truncated: Any
    info: Any
    fresh: Any  # (observation, state) of a reset with the key that the step's auto-reset has
    space_holds: Any  # of observation and of final_observation


def _make(case: Case):
    return envs.make(case.name, max_steps_in_episode=LIMIT, **case.options)


@functools.cache
def rollout(case_index: int) -> Rollout:
    env, params = _make(CASES[case_index])
    actions, observations = env.action_space(params), env.observation_space(params)

    def step(state, key):
        key_action, key_step = jax.random.split(key)
        action = actions.sample(key_action)
        out = env.step(key_step, state, action, params)
        key_reset = key_step if CASES[case_index].one_key else jax.random.split(key_step)[1]
        fresh = env.reset(key_reset, params)
        holds = (
            observations.contains(out[0]),
            observations.contains(out[5]["final_observation"]),
            actions.contains(action),
        )
        return out[1], (key_step, state, action, *out, fresh, holds)

    def run(key):
        key_reset, key_steps = jax.random.split(key)
        first = env.reset(key_reset, params)
        return first, jax.lax.scan(step, first[1], jax.random.split(key_steps, STEPS))[1]

    run = jax.jit(jax.vmap(run))
    first, record = run(jax.random.split(jax.random.key(0), ENVS))
    # In NumPy, because JAX would compile every indexing of every leaf. Keys stay as they are.
    key, *record = record
    return Rollout(env, params, jax.device_get(first), key, *jax.device_get(record))


def recorded(case: Case) -> Rollout:
    return rollout(CASES.index(case))


def assert_same(actual, expected, rtol=1e-6, atol=1e-6):
    def check(a, b):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=atol)

    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    jax.tree.map(check, actual, expected)


def at(tree, *index):
    return jax.tree.map(lambda x: x[index], tree)


def types(tree):
    leaves, structure = jax.tree.flatten(tree)
    kinds = [(x.shape, x.dtype.name, x.weak_type) for x in leaves]
    # Not the tree itself: packages have ideas of their own of when their states are equal.
    return kinds[0] if jax.tree_util.treedef_is_leaf(structure) else (structure, kinds)


def _kind(name: str, **options: Any) -> Any:
    """What a row stands for: our classes, and each environment of gymnax."""
    env = envs.make(name, **options)[0]
    return name if isinstance(env, envs.GymnaxEnvironment) else type(env)


def test_every_class_has_a_row():
    rows = {_kind(case.name, **case.options) for case in CASES}
    # What other tests have registered has a module of theirs.
    kinds = {_kind(name) for name in envs.names()}
    ours = {k for k in kinds if isinstance(k, str) or k.__module__.startswith("agents.")}
    assert len(ours) > 30 and ours <= rows


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("name", OTHERS)
def test_every_other_name_is_made_stepped_and_drawn(name):
    env, params = envs.make(name)
    assert envs.episode_steps(env, params) >= 1
    actions, observations = env.action_space(params), env.observation_space(params)

    @jax.jit
    def run(key):
        first, state = env.reset(key, params)
        out = env.step(key, state, actions.sample(key), params)
        return first, state, *out[:3], out[5]["final_observation"]

    first, state, observation, later, reward, final = run(jax.random.key(0))
    assert types((first, state)) == types((observation, later)) and types(final) == types(first)
    assert types(reward) == ((), "float32", False)
    for seen in (first, observation, final):
        assert observations.contains(seen)
    assert envs.render(env, params, state, observation=first).dtype == np.uint8


def check_types(env, params):
    key = jax.random.key(0)
    observation, state = jax.eval_shape(env.reset, key, params)
    action = jax.eval_shape(env.action_space(params).sample, key)
    out = jax.eval_shape(env.step, key, state, action, params)
    assert types(out[:2]) == types((observation, state))
    assert types(out[2]) == ((), "float32", False)
    assert types(out[3]) == types(out[4]) == ((), "bool", False)
    info = out[5]
    assert types(info["final_observation"]) == types(observation)
    assert types(info["terminated"]) == types(info["truncated"]) == ((), "bool", False)
    assert not any(leaf.weak_type for leaf in jax.tree.leaves((observation, state, out)))
    narrow = {"bool", "int8", "uint8", "int16", "int32", "uint32", "float32"}
    assert {leaf.dtype.name for leaf in jax.tree.leaves((state, out))} <= narrow
    space = env.observation_space(params)
    assert observation.shape == tuple(space.shape)
    discrete = isinstance(space, spaces.Discrete | envs.MultiDiscrete)
    assert observation.dtype == space.dtype == (jnp.int32 if discrete else jnp.float32)


@every_case
def test_types_with_64_bits_enabled(case):
    assert jax.config.read("jax_enable_x64")
    check_types(*_make(case))


@every_case
def test_types_with_32_bits(case, float32):
    check_types(*_make(case))


@pytest.mark.parametrize("name", ["hallway_keys", "MemoryS7"])
def test_the_same_key_is_the_same_episode_with_64_bit_types(name):
    env, params = envs.make(name)
    reset = jax.jit(jax.vmap(env.reset, (0, None)))
    keys = jax.random.split(jax.random.key(0), 8)
    wide = reset(keys, params)
    with jax.enable_x64(False):
        assert_same(wide, reset(keys, params), rtol=0, atol=0)


@every_case
def test_spaces_are_honored(case):
    r = recorded(case)
    observation, final_observation, action = r.space_holds
    assert np.all(observation)
    assert np.all(final_observation)
    assert np.all(action)
    first = jnp.asarray(r.first[0][0])
    assert r.env.observation_space(r.params).contains(first)
    space = r.env.action_space(r.params)
    if isinstance(space, spaces.Discrete):
        assert r.env.num_actions == space.n
    else:
        assert (r.env.num_actions,) == space.shape
    assert r.env.name


# It compiles the environment a second time: one of each family, and of each package's adapter.
SINGLE = ("RepeatFirst", "Battleship", "PositionOnlyCartPole", "t_maze", "gravity", "hallway_keys",
          "CartPole-v1", "FourRooms-misc", "brax/inverted_pendulum")  # fmt: skip


def _is_single(case: Case) -> bool:
    """Of packages those that compile fast."""
    return case.name in SINGLE or ("/" in case.name and not case.heavy)


@parametrize(filter(_is_single, CASES), quick=["t_maze"])
def test_one_program_steps_and_resets_as_many_do(case):
    """No second compilation, the same results with and without `vmap`, and determinism."""
    r = recorded(case)
    step = jax.jit(r.env.step)
    state = jax.tree.map(jnp.asarray, at(r.first[1], 0))
    expected = (r.observation, r.state, r.reward, r.terminated, r.truncated, r.info)
    for t in range(LIMIT + 1):  # over the first reset
        before, action = state, jnp.asarray(r.action[0, t])
        out = step(r.key[0, t], state, action, r.params)
        state = out[1]
        assert_same(out, at(expected, 0, t), rtol=1e-4, atol=1e-5)
        if out[4] and not out[3] and not case.shows_limit:
            # The final observation continues the episode: a longer limit shows it.
            limit = type(r.params.max_steps_in_episode)(2 * LIMIT)
            longer = r.params.replace(max_steps_in_episode=limit)
            longer = step(r.key[0, t], before, action, longer)
            assert not longer[4]
            assert_same(out[5]["final_observation"], longer[0])
    assert step._cache_size() == 1


@every_case
def test_auto_reset_is_a_fresh_reset(case):
    r = recorded(case)
    done = np.asarray(r.terminated | r.truncated)
    assert done.any(axis=1).all()
    assert not done.all() or case.name == "SimpleBandit-bsuite"
    fresh_observation, fresh_state = r.fresh
    fresh_state = fresh_state.replace(**{f: getattr(r.state, f) for f in case.kept})
    at_end = functools.partial(jax.tree.map, lambda x: np.asarray(x)[done])
    assert_same(at_end((r.observation, r.state)), at_end((fresh_observation, fresh_state)))
    # Elsewhere nothing is reset, and the final observation is the observation.
    going_on = functools.partial(jax.tree.map, lambda x: np.asarray(x)[~done])
    assert_same(going_on(r.info["final_observation"]), going_on(r.observation))
    time, before = np.asarray(r.state.time), np.asarray(r.before.time)
    assert (time[done] == 0).all()
    np.testing.assert_array_equal(time[~done], before[~done] + 1)
    np.testing.assert_array_equal(np.asarray(r.before.time)[:, 0], 0)


@every_case
def test_time_limit_truncates_and_only_it(case):
    r = recorded(case)
    assert envs.episode_steps(r.env, r.params) == LIMIT
    length = np.asarray(r.before.time) + 1  # of the episode, with this step
    terminated, truncated = np.asarray(r.terminated), np.asarray(r.truncated)
    # At the limit an episode is truncated; if it also terminates there, it may be both or not.
    np.testing.assert_array_equal(truncated | terminated, (length >= LIMIT) | terminated)
    assert not truncated[length < LIMIT].any()
    assert (length <= LIMIT).all()
    assert truncated.any() != case.ends_first
    assert terminated.any() or not case.ends_first
    np.testing.assert_array_equal(r.info["terminated"], terminated)
    np.testing.assert_array_equal(r.info["truncated"], truncated)


@every_case
def test_default_parameters(case):
    """`None` means the default parameters, as in gymnax."""
    env, params = envs.make(case.name, **case.options)
    if case.options.keys() <= {"decks", "k"}:
        assert_same(params, env.default_params, rtol=0, atol=0)
    key = jax.random.key(1)
    shapes = jax.eval_shape(env.reset, key)
    assert types(shapes) == types(jax.eval_shape(env.reset, key, params))
    assert envs.episode_steps(env, params) >= 1
