"""gymnasium's environments on the host, against gymnasium itself, and under an agent."""

import importlib.util

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces

import agents
import zoo
from agents import envs
from agents.acting.behavior import ByPolicy
from agents.envs import wrappers
from agents.envs.bridges.gymnasium_env import _space

ENVS, STEPS, LIMIT = 3, 60, 15


def rollout(env, params, actions, key=0):
    """Observations, rewards, flags and times `[env, time, ...]`, and the first observations."""

    def run(key, actions):
        first, state = env.reset(key, params)

        def step(state, action):
            observation, state, *rest, info = env.step(key, state, action, params)
            return state, (observation, info["final_observation"], *rest, state.time)

        return first, jax.lax.scan(step, state, actions)[1]

    keys = jax.random.split(jax.random.key(key), ENVS)
    return jax.device_get(jax.jit(jax.vmap(run))(keys, actions)), keys


def oracle(make, seed, actions):
    """The same by a loop over gymnasium's environment."""
    env = make()
    first, _ = env.reset(seed=int(seed))
    rows, time = [], 0
    for action in actions:
        final, reward, terminated, truncated, _ = env.step(action)
        observation, time = final, time + 1
        if terminated or truncated:
            observation, time = env.reset()[0], 0
        rows.append((observation, final, reward, terminated, truncated, time))
    return first, [np.array(x) for x in zip(*rows, strict=True)]


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_steps_equal_those_of_gymnasium(name):
    env, params = envs.make(f"gymnasium/{name}", max_steps_in_episode=LIMIT)
    space = env.action_space(params)
    samples = jax.vmap(space.sample)(jax.random.split(jax.random.key(1), ENVS * STEPS))
    actions = np.asarray(samples).reshape(ENVS, STEPS, *space.shape)
    (first, record), keys = rollout(env, params, actions)
    seen = set()
    for e in range(ENVS):
        seed = jax.random.bits(keys[e], dtype=jnp.uint32)
        expected_first, expected = oracle(
            lambda: gymnasium.make(name, max_episode_steps=LIMIT), seed, actions[e]
        )
        np.testing.assert_allclose(first[e], expected_first, rtol=1e-6)
        for ours, theirs in zip(record, expected, strict=True):
            np.testing.assert_allclose(ours[e], theirs, rtol=1e-6)
        seen |= {(bool(a), bool(b)) for a, b in zip(record[3][e], record[4][e], strict=True)}
        done = record[3][e] | record[4][e]
        # At an end the observation is the next episode's first one, and the final one is not.
        assert (record[0][e] != record[1][e])[done].any(axis=1).all()
        assert (record[0][e] == record[1][e])[~done].all()
    assert (False, True) in seen
    assert (True, False) in seen or name == "Pendulum-v1"
    assert envs.episode_steps(env, params) == LIMIT
    env.close()


def check_types(env, params):
    key = jax.random.key(0)
    first = jax.eval_shape(env.reset, key, params)
    action = jax.eval_shape(env.action_space(params).sample, key)
    out = jax.eval_shape(env.step, key, first[1], action, params)
    leaves = jax.tree.leaves(out[:2])
    assert [(x.shape, x.dtype) for x in leaves] == [
        (x.shape, x.dtype) for x in jax.tree.leaves(first)
    ]
    assert {x.dtype.name for x in jax.tree.leaves(out)} <= {"bool", "int32", "float32"}
    assert not any(x.weak_type for x in jax.tree.leaves((first, out)))
    assert out[2].dtype == jnp.float32
    assert out[3].dtype == out[4].dtype == bool


@pytest.mark.slow
def test_types_with_64_bits_enabled():
    assert jax.config.read("jax_enable_x64")
    check_types(*envs.make("gymnasium/CartPole-v1"))


@pytest.mark.slow
def test_types_with_32_bits(float32):
    check_types(*envs.make("gymnasium/CartPole-v1"))


class Numbers(gymnasium.Env):
    """Shows the last action, or what `spaces` has as its first element."""

    def __init__(self, observations, actions):
        self.observation_space, self.action_space = observations, actions
        self.seen = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.seen.append(action)
        return self.observation_space.sample(), 1, False, False, {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("theirs", "kind", "dtype"),
    [
        (gymnasium.spaces.Discrete(5, start=-2), spaces.Discrete, jnp.int32),
        (gymnasium.spaces.MultiDiscrete([2, 3], start=[1, 5]), envs.MultiDiscrete, jnp.int32),
        (gymnasium.spaces.MultiBinary(4), envs.MultiDiscrete, jnp.int32),
        (gymnasium.spaces.Box(0, 255, (2, 3), np.uint8), spaces.Box, jnp.float32),
        (gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64), spaces.Box, jnp.float32),
    ],
    ids=str,
)
def test_kinds_of_spaces(theirs, kind, dtype):
    """Values count from 0 on this side, and actions arrive as elements of gymnasium's space."""
    action = theirs if dtype == jnp.int32 else gymnasium.spaces.Box(-1, 1, (2,), np.float64)
    env, params = envs.from_gymnasium(lambda: Numbers(theirs, action))
    space = env.observation_space(params)
    assert isinstance(space, kind)
    assert env.name == "gymnasium/Numbers"
    sample = jax.jit(env.action_space(params).sample)
    observation, state = env.reset(jax.random.key(0), params)
    for t in range(5):
        assert observation.dtype == dtype == space.dtype
        assert space.contains(observation)
        observation, state, reward, *_ = env.step(
            jax.random.key(t), state, sample(jax.random.key(t)), params
        )
        assert reward == 1
    assert state.time == state.ticket == 5


@pytest.mark.slow
def test_a_function_that_makes_an_environment_and_a_limit():
    env, params = envs.from_gymnasium(
        lambda: Numbers(gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(3)),
        max_steps_in_episode=2,
    )
    _, state = env.reset(jax.random.key(0))
    flags = []
    for _ in range(4):
        _, state, _, terminated, truncated, _ = env.step(jax.random.key(0), state, 0)
        flags.append((bool(terminated), bool(truncated)))
    assert flags == [(False, False), (False, True)] * 2
    assert params.max_steps_in_episode == 2
    unlimited, params = envs.from_gymnasium(lambda: env.host._make().env)
    assert envs.episode_steps(unlimited, params) == 1_000_000_000


def test_what_has_no_bounds_is_drawn_from_normally():
    low, high = np.array([-np.inf, -np.inf, 2, -1]), np.array([np.inf, 3, np.inf, 1])
    boxes = gymnasium.spaces.Box(low, high, dtype=np.float64)
    env, params = envs.from_gymnasium(
        lambda: Numbers(gymnasium.spaces.Discrete(3), boxes), max_steps_in_episode=2
    )
    space = env.action_space(params)
    drawn = jax.vmap(space.sample)(jax.random.split(jax.random.key(0), 4000))
    assert drawn.dtype == jnp.float32 and jax.vmap(space.contains)(drawn).all()
    np.testing.assert_allclose(drawn.mean(0), [0, 2, 3, 0], atol=0.06)
    np.testing.assert_allclose(drawn.std(0), [1, 1, 1, 3**-0.5], atol=0.06)


class OneArray(gymnasium.Env):
    """Fills one array with every observation, and tells what cannot be put side by side."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.seen = np.zeros(2, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.seen[:] = 0, -1
        return self.seen, {"final_obs": np.ones(2)}

    def step(self, action):
        self.steps += 1
        self.seen[:] = self.steps / 10
        allowed = np.arange(self.np_random.integers(1, 9))
        return self.seen, 0.0, False, False, {"allowed": allowed}


def test_an_environment_may_fill_one_array_and_tell_what_it_likes():
    env, params = envs.from_gymnasium(OneArray, max_steps_in_episode=3)
    keys = jax.random.split(jax.random.key(0), 4)
    _, state = jax.vmap(env.reset, (0, None))(keys, params)
    step = jax.jit(jax.vmap(env.step, (0, 0, 0, None)))
    for count in (1, 2, 3):
        seen, state, _, _, truncated, info = step(keys, state, jnp.zeros(4, int), params)
        final = info["final_observation"]
        np.testing.assert_allclose(final, np.full((4, 2), count / 10), rtol=1e-6)
        np.testing.assert_array_equal(seen, final if count < 3 else -np.ones((4, 2)))
    assert truncated.all()


def test_a_limit_of_the_environments_own_is_known():
    def make():
        return gymnasium.wrappers.TimeLimit(
            Numbers(gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(3)), 4
        )

    assert envs.from_gymnasium(make)[1].max_steps_in_episode == 4
    assert envs.from_gymnasium(make, max_steps_in_episode=3)[1].max_steps_in_episode == 3
    with pytest.raises(ValueError, match=r"`max_steps_in_episode` \(=5\) must be at most 4, after"):
        envs.from_gymnasium(make, max_steps_in_episode=5)


def test_every_reset_makes_environments_anew():
    class CountingEpisodes(Numbers):
        episodes = 0

        def reset(self, **options):
            self.episodes += 1
            return self.episodes, super().reset(**options)[1]

    space = gymnasium.spaces.Discrete(9)
    env, params = envs.from_gymnasium(lambda: CountingEpisodes(space, space))
    reset = jax.jit(env.reset)
    assert [int(reset(jax.random.key(0), params)[0]) for _ in range(9)] == [1] * 9


@pytest.mark.slow
def test_environments_are_seeded_by_the_key():
    env, params = envs.make("gymnasium/CartPole-v1")
    actions = np.zeros((ENVS, 5), np.int32)
    (first, record), _ = rollout(env, params, actions)
    (again, same), _ = rollout(env, params, actions)
    (other, _), _ = rollout(env, params, actions, key=1)
    np.testing.assert_array_equal(first, again)
    jax.tree.map(np.testing.assert_array_equal, record, same)
    assert (first != other).all()
    assert len(np.unique(first[:, 0])) == ENVS


@pytest.mark.slow
def test_what_a_state_on_the_host_cannot_do():
    env, params = envs.make("gymnasium/CartPole-v1")
    keys = jax.random.split(jax.random.key(0), 2)
    reset = jax.vmap(env.reset, (0, None))
    step = jax.vmap(env.step, (0, 0, 0, None))
    actions = jnp.zeros(2, jnp.int32)
    _, state = reset(keys, params)
    _, after, *_ = step(keys, state, actions, params)
    for old, message in (
        (state, r"the state \(after step 0\) must be the newest one \(after step 1\)"),
        (
            jax.tree.map(lambda x: x[:1], after),
            r"all 2 environments of CartPole-v1 .* there were 1",
        ),
        (jax.tree.map(lambda x: x[::-1], after), r"together and in the same order"),
        (after.replace(number=after.number + 9), r"not on this host .* cannot be resumed"),
    ):
        n = old.time.shape[0]
        with pytest.raises(RuntimeError, match=message):
            jax.block_until_ready(step(keys[:n], old, actions[:n], params))
    other = params.replace(max_steps_in_episode=9)
    for error, begin in ((ValueError, reset), (RuntimeError, jax.jit(reset))):  # on the host
        with pytest.raises(error, match=r"`max_steps_in_episode` \(=9\) must be 500, which it"):
            jax.block_until_ready(begin(keys, other))
    _, last, *_ = step(keys, after, actions, params)  # an error changes nothing
    for _ in range(4):  # as many as are kept
        reset(keys, params)
    with pytest.raises(RuntimeError, match="only the last 4 sets"):
        jax.block_until_ready(step(keys, last, actions, params))


def ppo(**options):
    return agents.PPO(
        env="gymnasium/CartPole-v1",
        env_options={"max_steps_in_episode": 12},
        memory=zoo.spec("rtu", hidden=4),
        gradient=agents.RTRL(4),
        num_envs=3,
        rollout_length=16,
        minibatches=2,
        epochs=1,
        encoder_size=4,
        head_size=4,
        **options,
    )


@pytest.mark.slow
def test_a_policy_collects_a_rollout():
    algorithm = ppo()
    behavior = ByPolicy(algorithm.init(key=jax.random.key(0)).learner.network)
    actor = algorithm.actor
    runner = actor.reset(behavior, 3, key=jax.random.key(1))

    @jax.jit
    def collect(runner, key):
        return actor.collect(behavior, runner, length=16, segment=4, key=key)[:2]

    for seed in range(2):
        runner, steps = collect(runner, jax.random.key(seed))
        done = np.asarray(steps.terminated | steps.truncated)
        assert np.asarray(steps.truncated).any()
        np.testing.assert_array_equal(steps.inputs.begin[1:], done[:-1])
        # The value of a truncated episode's last observation is there to bootstrap from.
        cut = np.asarray(steps.truncated & ~steps.terminated)
        assert np.all(np.asarray(steps.last)[cut] != 0)
        length = np.asarray(steps.episode_length)
        assert length.max() == 12
        np.testing.assert_allclose(steps.episode_return, length)
        # A pole's angle begins within 0.05 of upright.
        begins = np.asarray(steps.inputs.observation)[np.asarray(steps.inputs.begin)]
        assert np.abs(begins).max() <= 0.05
    np.testing.assert_array_equal(runner.begin, done[-1])


@pytest.mark.slow
def test_it_is_trained_and_evaluated(tmp_path):
    """Two seeds: one call to the host steps the environments of both."""
    result = agents.train(ppo(), steps=192, seeds=2, out=tmp_path / "run")
    assert result is not None


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: envs.make("gymnasium/CartPool-v1"),
            ValueError,
            r"`env` \(='CartPool-v1'\) must be an id of gymnasium: .*CartPole",
        ),
        (
            lambda: envs.make("gymnasium/CartPole-v1", max_steps_in_episode=0),
            ValueError,
            r"`max_steps_in_episode` \(=0\) must be a whole number of at least 1, or None",
        ),
        (
            lambda: envs.make("gymnasium/CartPole-v1", max_steps_in_episode="200"),
            TypeError,
            r"`max_steps_in_episode` \(='200'\) must be a whole number or None",
        ),
        (
            lambda: envs.make("gymnasium/CartPole-v1", max_steps_in_episode=2**33),
            ValueError,
            r"`max_steps_in_episode` \(=8589934592\) must be at most 2147483647",
        ),
        (
            lambda: envs.make("gymnasium/CartPole-v1", size=3),
            ValueError,
            r"Unknown option `size` of gymnasium/CartPole-v1; .*max_steps_in_ep.*, sutton_barto_r",
        ),
        (
            lambda: envs.make("gymnasium/Cart Pole"),
            ValueError,
            r"`env` \(='Cart Pole'\) must be an id of gymnasium: Malformed",
        ),
        (
            lambda: wrappers.TimeLimit(envs.make("gymnasium/CartPole-v1")[0], 9),
            ValueError,
            r"`env` \(=gymnasium/CartPole-v1\) cannot be reset by itself, because it runs on",
        ),
        (
            lambda: envs.from_gymnasium(dict, size=3),
            ValueError,
            r"Unknown option `size`: a function",
        ),
        (
            lambda: envs.from_gymnasium(lambda size: gymnasium.make("CartPole-v1")),
            TypeError,
            r"`env` \(=<function .*\) must be called without arguments, and takes \(size\)",
        ),
        (
            lambda: _space("actions", gymnasium.spaces.Text(3)),
            TypeError,
            r"The actions \(=Text.*\) must be Discrete, MultiDiscrete or MultiBinary of one axis",
        ),
    ],
)
def test_arguments_that_break_a_rule(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.skipif(importlib.util.find_spec("ale_py") is not None, reason="Atari is installed")
def test_a_missing_emulator_is_named():
    with pytest.raises(ModuleNotFoundError, match=r"ALE/Breakout-v5 .*GPL: pip install 'trace-z"):
        envs.make("gymnasium/ALE/Breakout-v5")
