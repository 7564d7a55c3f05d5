"""`make`, `names` and `episode_steps`, and gymnax's environments behind them."""

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs


def test_names():
    names = envs.names()
    assert len(names) == len(set(names))
    ours = {f"Repeat{what}{level}" for what in ("First", "Previous") for level in ("", "Hard")}
    assert ours | {"CartPole-v1", "MemoryChain-bsuite"} <= set(names)
    assert set(gymnax.registered_envs) - set(names) == {"MNISTBandit-bsuite"}


@pytest.mark.slow
def test_an_environment_registered_with_gymnax_is_known():
    gymnax.registration.register("Mine-v0", envs.RepeatFirst)
    try:
        assert "Mine-v0" in envs.names()
        env, _ = envs.make("Mine-v0", decks=2)
        assert isinstance(env, envs.GymnaxEnvironment)
        assert env.env.decks == 2
    finally:
        gymnax.registered_envs.remove("Mine-v0")
        del gymnax.registration._registry["Mine-v0"]


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    ("level", "decks", "k", "steps"),
    [("Easy", 1, 4, 51), ("Medium", 2, 32, 103), ("Hard", 3, 64, 155)],
)
def test_repeat_previous_levels(level, decks, k, steps):
    env, params = envs.make(f"RepeatPrevious{level}")
    assert (env.decks, env.k) == (decks, k)
    assert envs.episode_steps(env, params) == steps


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    ("level", "decks", "steps"), [("Easy", 1, 51), ("Medium", 8, 415), ("Hard", 16, 831)]
)
def test_repeat_first_levels(level, decks, steps):
    env, params = envs.make(f"RepeatFirst{level}")
    assert env.decks == decks
    assert envs.episode_steps(env, params) == steps


def test_options_of_ours():
    env, params = envs.make("RepeatPrevious", decks=3, k=np.int64(9), max_steps_in_episode=20)
    assert (env.decks, env.k, envs.episode_steps(env, params)) == (3, 9, 20)


@pytest.mark.slow
def test_options_of_gymnax():
    env, params = envs.make("MemoryChain-bsuite", memory_length=10, num_bits=3)
    assert params.memory_length == 10
    observation, state = env.reset(jax.random.key(0), params)
    assert observation.shape == env.observation_space(params).shape == (5,)
    step = jax.jit(env.step)
    flags = []
    for t in range(11):
        _, state, _, terminated, truncated, _ = step(jax.random.key(t), state, 0, params)
        assert not truncated
        flags.append(bool(terminated))
    assert flags == 10 * [False] + [True]


def test_a_constructor_option_also_changes_the_default_parameters():
    env, params = envs.make("DeepSea-bsuite", size=5)
    assert envs.episode_steps(env, params) == 5
    assert env.observation_space(params).shape == (5, 5)


def test_an_option_that_is_an_array():
    env, params = envs.make("Acrobot-v1", available_torque=[-2, 0, 2])
    np.testing.assert_array_equal(params.available_torque, [-2, 0, 2])
    assert params.available_torque.dtype == env.default_params.available_torque.dtype
    with pytest.raises(ValueError, match=r"`available_torque` \(of shape \(2,\)\) must have shape"):
        envs.make("Acrobot-v1", available_torque=[-2, 2])


def test_a_fractional_limit_is_rounded_up():
    env, params = envs.make("BernoulliBandit-misc", max_steps_in_episode=7.5)
    assert envs.episode_steps(env, params) == 8
    _, params = envs.make("BernoulliBandit-misc", max_steps_in_episode=7)
    assert isinstance(params.max_steps_in_episode, float)  # gymnax's own type of this limit


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "RepeatPreviusEasy",
            r"`name` \(='RepeatPreviusEasy'\) must be .*: the nearest names are RepeatPreviousEasy",
        ),
        ("cartpole", r"the nearest names are CartPole-v1"),
        ("", r"`name` \(=''\) must be the name of an environment: `agents.envs.names\(\)` lists"),
        ("MNISTBandit-bsuite", r"`name` \(='MNISTBandit-bsuite'\) is not available: it downloads"),
    ],
)
def test_unknown_name(name, message):
    with pytest.raises(ValueError, match=message):
        envs.make(name)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "RepeatPrevious",
            {"lag": 3},
            r"Unknown option `lag` \(=3\) of RepeatPrevious; it must be one of: "
            r"decks, k, max_steps_in_episode, observability\.",
        ),
        # What a level's name fixes is not an option.
        (
            "RepeatPreviousEasy",
            {"k": 8},
            r"Unknown option `k` \(=8\) of .*: max_steps_in_episode, observability\.",
        ),
        (
            "MemoryChain-bsuite",
            {"length": 3},
            r"one of: max_steps_in_episode, memory_length, num_bits\.",
        ),
        ("RepeatFirst", {"max_steps_in_episode": 0}, r"`max_steps_in_episode` \(=0\) must be at"),
        ("RepeatPrevious", {"k": 52}, r"`k` \(=52\) must be at least 1 and less than 52"),
    ],
)
def test_options_that_break_a_rule(name, options, message):
    with pytest.raises(ValueError, match=message):
        envs.make(name, **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("RepeatPrevious", {"k": 4.0}, r"`k` \(=4\.0\) must be a whole number\."),
        ("RepeatFirst", {"decks": True}, r"`decks` \(=True\) must be a whole number\."),
        ("MemoryChain-bsuite", {"memory_length": "10"}, r"`memory_length` \(='10'\) must be a wh"),
        ("CartPole-v1", {"gravity": "9"}, r"`gravity` \(='9'\) must be a number\."),
        ("FrozenLake-misc", {"is_slippery": 1}, r"`is_slippery` \(=1\) must be True or False\."),
    ],
)
def test_options_of_the_wrong_kind(name, options, message):
    with pytest.raises(TypeError, match=message):
        envs.make(name, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["CartPole-v1", "UmbrellaChain-bsuite", "FourRooms-misc"])
def test_the_adapter_changes_types_only(name, float32):
    env, params = envs.make(name)
    plain, plain_params = gymnax.make(name)

    def rollout(env, params):
        def step(state, key):
            key_action, key_step = jax.random.split(key)
            action = plain.action_space(plain_params).sample(key_action)
            observation, state, *rest = env.step(key_step, state, action, params)
            return jax.tree.map(lambda x, old: x.astype(old.dtype), state, first), (
                observation,
                *rest,
            )

        observation, first = env.reset(jax.random.key(0), params)
        first = jax.tree.map(lambda x: jnp.asarray(x, jnp.asarray(x).dtype), first)
        return observation, jax.lax.scan(step, first, jax.random.split(jax.random.key(1), 300))[1]

    ours = jax.jit(lambda: rollout(env, params))()
    theirs = jax.jit(lambda: rollout(plain, plain_params))()
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


HALVES = {
    "top": (slice(0, 5), slice(None)),
    "bottom": (slice(5, 10), slice(None)),
    "left": (slice(None), slice(0, 5)),
    "right": (slice(None), slice(5, 10)),
}


@pytest.mark.slow
@pytest.mark.parametrize("half", HALVES)
def test_half_a_frame_is_hidden(half):
    env, params = envs.make("Asterix-MinAtar", mask=half)
    frame = jnp.ones(env.observation_space(params).shape, jnp.float32)
    expected = np.ones((10, 10, 4))
    expected[HALVES[half]] = 0
    np.testing.assert_array_equal(env._observe(None, frame, params), expected)
    np.testing.assert_array_equal(env.observation_space(params).high, expected)
    assert env.name == "Asterix-MinAtar"


@pytest.mark.slow
def test_hidden_and_flickering_frames():
    env, params = envs.make("Freeway-MinAtar", mask="left", flicker=0.5, max_steps_in_episode=7)
    assert isinstance(env, envs.wrappers.Flicker)
    assert isinstance(env.env, envs.wrappers.Hide)
    assert env.probability == 0.5
    assert envs.episode_steps(env, params) == 7
    frames, _ = jax.jit(jax.vmap(env.reset, (0, None)))(
        jax.random.split(jax.random.key(0), 64), params
    )
    assert frames.shape == (64, 10, 10, 7)
    seen = np.any(np.asarray(frames), axis=(1, 2, 3))
    assert 12 <= seen.sum() <= 52  # half of them, within five standard deviations
    assert not np.any(frames[:, :, :5])
    for options in ({}, {"mask": "none", "flicker": 0}):
        assert isinstance(envs.make("Freeway-MinAtar", **options)[0], envs.GymnaxEnvironment)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Freeway-MinAtar", {"mask": "half"}, r"`mask` \(='half'\) must be one of: none, top, bot"),
        ("Freeway-MinAtar", {"flicker": 2}, r"`flicker` \(=2\.0\) must be in \[0, 1\]\."),
        (
            "Freeway-MinAtar",
            {"masks": "top"},
            r"Unknown option `masks` .*: flicker, mask, max_steps",
        ),
        ("CartPole-v1", {"mask": "top"}, r"Unknown option `mask` \(='top'\) of CartPole-v1; it"),
    ],
)
def test_options_of_frames_that_break_a_rule(name, options, message):
    with pytest.raises(ValueError, match=message):
        envs.make(name, **options)


@pytest.mark.slow
def test_the_time_limit_of_a_wrapped_environment():
    env, params = envs.make("CartPole-v1", max_steps_in_episode=9)
    assert envs.episode_steps(envs.wrappers.Log(env), params) == 9
    for limit, steps in ((4, 4), (20, 9)):
        limited = envs.wrappers.Log(envs.wrappers.TimeLimit(env, limit))
        assert envs.episode_steps(limited, params) == steps
