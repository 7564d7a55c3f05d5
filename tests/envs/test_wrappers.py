"""What holds for every wrapper: types, what is handed on, and errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from agents.envs import wrappers
from agents.envs.wrappers.base import check_environment
from tests.envs.walk import Walk

ALL = [
    wrappers.Mask(Walk(), [0, 1]),
    wrappers.Hide(Walk(), [True, False, False]),
    wrappers.Noise(Walk(), 0.1),
    wrappers.Flicker(Walk(), 0.5),
    wrappers.FrameStack(Walk(), 2),
    wrappers.PreviousActionReward(Walk()),
    wrappers.OneHot(envs.make("RepeatFirst")[0]),
    wrappers.Flatten(Walk("frame")),
    wrappers.TimeLimit(Walk(), 5),
    wrappers.Log(Walk()),
    wrappers.NormalizeObservation(Walk()),
    wrappers.NormalizeReward(Walk()),
    wrappers.Log(wrappers.FrameStack(wrappers.Flicker(envs.make("CartPole-v1")[0]), 3)),
    wrappers.TimeLimit(wrappers.Noise(wrappers.Log(Walk()), 0.1), 5),
]
every_wrapper = pytest.mark.parametrize("env", ALL, ids=lambda env: type(env).__name__)


def types(tree):
    return jax.tree.map(lambda x: (x.shape, x.dtype.name, x.weak_type), tree)


def check_types(env):
    """The same after `reset` and `step`, of 32 bits, and none of them weak."""
    params = env.default_params
    key = jax.random.key(0)
    first = jax.eval_shape(env.reset, key)
    action = jax.eval_shape(env.action_space(params).sample, key)
    out = jax.eval_shape(env.step, key, first[1], action)
    assert types(out[:2]) == types(first)
    assert types(out[2]) == ((), "float32", False)
    assert types(out[3]) == types(out[4]) == ((), "bool", False)
    assert types(out[5]["final_observation"]) == types(first[0])
    names = {leaf.dtype.name for leaf in jax.tree.leaves(out)}
    assert names <= {"bool", "int32", "uint32", "float32"}
    assert not any(leaf.weak_type for leaf in jax.tree.leaves((first, out)))
    space = env.observation_space()
    assert first[0].shape == tuple(space.shape)
    assert first[0].dtype == space.dtype


@pytest.mark.quick_rows(1)
@every_wrapper
def test_types_with_64_bits_enabled(env):
    assert jax.config.read("jax_enable_x64")
    check_types(env)


@pytest.mark.slow
@every_wrapper
def test_types_with_32_bits(env, float32):
    check_types(env)


@pytest.mark.slow
@every_wrapper
def test_what_is_handed_on(env):
    params = env.default_params
    assert env.name == env.env.name
    assert env.num_actions == env.env.num_actions
    assert repr(env.action_space()) == repr(env.env.action_space(params))
    _, state = env.reset(jax.random.key(0), params)
    assert state.time == 0
    assert not env.is_truncated(state, params)


@pytest.mark.slow
def test_an_agent_compiles_a_wrapped_environment_once():
    env = wrappers.PreviousActionReward(wrappers.NormalizeObservation(wrappers.Log(Walk())))
    step = jax.jit(env.step)
    _, state = env.reset(jax.random.key(0))
    for t in range(12):
        _, state, *_ = step(jax.random.key(t), state, jnp.int32(1), env.default_params)
    assert step._cache_size() == 1


CARTPOLE = envs.make("CartPole-v1")[0]
REPEAT = envs.make("RepeatPrevious")[0]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: check_environment("Walk"), TypeError, r"`env` \(='Walk'\) must be a gymnax envir"),
        (
            lambda: wrappers.FrameStack(REPEAT),
            TypeError,
            r"`env` \(=RepeatPrevious\) must have observations in a Box for FrameStack, not in Dis",
        ),
        (lambda: wrappers.OneHot(CARTPOLE), TypeError, r"in a Discrete or MultiDiscrete for OneH"),
        (
            lambda: wrappers.Mask(Walk("frame"), [0]),
            TypeError,
            r"not of shape \(2, 3, 1\); Flatten",
        ),
        (
            lambda: wrappers.PreviousActionReward(Walk("frame")),
            TypeError,
            r"must have observations of one axis for PreviousActionReward, not of shape",
        ),
        (
            lambda: wrappers.Mask(CARTPOLE, [0, 4]),
            ValueError,
            r"`keep` \(=\[0, 4\]\) must hold different components, at least one, from 0 to 3\.",
        ),
        (lambda: wrappers.Mask(CARTPOLE, []), ValueError, r"`keep` \(=\[\]\) must hold"),
        (lambda: wrappers.Mask(CARTPOLE, [1, 1]), ValueError, r"`keep` \(=\[1, 1\]\) must hold"),
        (
            lambda: wrappers.Hide(CARTPOLE, [True]),
            ValueError,
            r"`hidden` \(of shape \(1,\)\) must have the shape of an observation \(=\(4,\)\)\.",
        ),
        (
            lambda: wrappers.Noise(CARTPOLE, [1, 2]),
            ValueError,
            r"`scale` \(of shape \(2,\)\) must be a number or have the shape of an observation",
        ),
        (lambda: wrappers.Noise(CARTPOLE, -1), ValueError, r"`scale` \(=-1\) must be finite and"),
        (
            lambda: wrappers.Flicker(CARTPOLE, 1.5),
            ValueError,
            r"`probability` \(=1\.5\) must be in \[0, 1\]\.",
        ),
        (
            lambda: wrappers.FrameStack(CARTPOLE, 0),
            ValueError,
            r"`count` \(=0\) must be a whole number of at least 1",
        ),
        (
            lambda: wrappers.PreviousActionReward(CARTPOLE, action=False, reward=False),
            ValueError,
            r"`action` or `reward` \(both False\) must be True\.",
        ),
        (lambda: wrappers.TimeLimit(CARTPOLE, 2**31), ValueError, "must be at most 2147483647"),
        (lambda: wrappers.TimeLimit(CARTPOLE, 0), ValueError, r"`limit` \(=0\) must be a whole"),
        (
            lambda: wrappers.NormalizeObservation(CARTPOLE, limit=0.0),
            ValueError,
            r"`limit` \(=0\.0\) must be above 0\.",
        ),
        (
            lambda: wrappers.NormalizeReward(CARTPOLE, discount=1.1),
            ValueError,
            r"`discount` \(=1\.1\) must be in \[0, 1\]\.",
        ),
        (lambda: wrappers.NormalizeReward(CARTPOLE, limit=-1.0), ValueError, r"`limit` \(=-1\.0\)"),
    ],
)
def test_arguments_that_break_a_rule(make, error, message):
    with pytest.raises(error, match=message):
        make()


NO_NUMBER = "must be a number or an array of numbers"
NOT_WHOLE = "must be a list, each of it a whole number"


@pytest.mark.parametrize(
    ("wrapper", "options", "message"),
    [
        ("Noise", {"scale": "a"}, rf"`scale` \(='a'\) {NO_NUMBER}"),
        ("Noise", {"scale": [[1.0], [1.0, 2.0]]}, rf"`scale` \(=\[\[1.*\) {NO_NUMBER}"),
        ("Noise", {"scale": True}, rf"`scale` \(=True\) {NO_NUMBER}"),
        ("Flicker", {"probability": "a"}, r"`probability` \(='a'\) must be a number"),
        ("Flicker", {"probability": None}, r"`probability` \(=None\) must be a number"),
        ("Flicker", {"probability": np.ones(2)}, r"`probability` \(=array.*\) must be a number"),
        ("TimeLimit", {"limit": 2.5}, r"`limit` \(=2\.5\) must be a whole number"),
        ("TimeLimit", {"limit": None}, r"`limit` \(=None\) must be a whole number"),
        ("TimeLimit", {"limit": True}, r"`limit` \(=True\) must be a whole number"),
        ("FrameStack", {"count": 2.0}, r"`count` \(=2\.0\) must be a whole number"),
        ("FrameStack", {"count": True}, r"`count` \(=True\) must be a whole number"),
        ("PreviousActionReward", {"action": "no"}, r"`action` \(='no'\) must be True or False"),
        ("PreviousActionReward", {"reward": 1}, r"`reward` \(=1\) must be True or False"),
        ("NormalizeObservation", {"limit": "a"}, r"`limit` \(='a'\) must be a number"),
        ("NormalizeReward", {"limit": None}, r"`limit` \(=None\) must be a number"),
        ("NormalizeReward", {"discount": "a"}, r"`discount` \(='a'\) must be a number"),
        ("Hide", {"hidden": [0, 2]}, r"`hidden` \(=\[0, 2\]\) must be an array of booleans"),
        ("Mask", {"keep": 1}, rf"`keep` \(=1\) {NOT_WHOLE}"),
        ("Mask", {"keep": [True, False]}, rf"`keep` \(=\[True, False\]\) {NOT_WHOLE}"),
        ("Mask", {"keep": np.array([True, False])}, rf"`keep` \(=\[True, False\]\) {NOT_WHOLE}"),
    ],
)
def test_arguments_of_another_kind(wrapper, options, message, unhooked):
    with pytest.raises((TypeError, ValueError), match=message):
        getattr(wrappers, wrapper)(CARTPOLE, **options)


@pytest.mark.parametrize("keep", [range(2), np.array([0, 1]), jnp.array([0, 1]), (np.int32(0), 1)])
def test_a_mask_takes_every_sequence_of_whole_numbers(keep, unhooked):
    assert wrappers.Mask(CARTPOLE, keep).keep == (0, 1)
