"""Acting: where episodes begin and end, what is kept, and what an evaluation counts."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces
from gymnax.environments.environment import Environment

import zoo
from agents import envs
from agents.acting import (
    AbstractBehavior,
    Actor,
    ByPolicy,
    Decision,
    Policy,
    episode_statistics,
    evaluate,
)
from agents.acting.episodes import play
from agents.acting.values import Recorded
from agents.analysis import episode_sensitivities
from agents.networks import actor_critic
from tests.agents.tasks import Spans, Tape
from tests.envs.walk import Walk
from tests.zoo.forms import assert_close

KEY = jax.random.key(0)


class Counting(AbstractBehavior):
    """Its memory counts the steps of the episode, from 1; the memo is the count."""

    answer: int = 0

    def init_state(self):
        return jnp.zeros((), jnp.int32)

    def __call__(self, state, inputs, key):
        state = jnp.where(inputs.begin, 0, state) + 1
        return state, Decision(jnp.full(state.shape, self.answer, jnp.int32), state)

    def at_end(self, state, inputs) -> Any:
        return state, inputs.observation, inputs.action, inputs.reward, inputs.begin


def collected(env, params=None, envs=2, length=12, key=KEY, **options):
    actor, behavior = Actor(env, env.default_params if params is None else params), Counting()

    @jax.jit
    def run():
        state = actor.reset(behavior, envs, key=key)
        return actor.collect(behavior, state, length=length, key=key, **options)

    return run()


class Breaking(Walk):
    """Its steps, or its space, are not what they have to be."""

    def __init__(self, space=None, form="vector", **change):
        super().__init__(form)
        self.space, self.change = space, change

    def observation_space(self, params):
        return super().observation_space(params) if self.space is None else self.space

    def step(self, key, state, action, params=None):
        observation, state, reward, terminated, truncated, info = super().step(
            key, state, action, params
        )
        out = {"observation": observation, "state": state, "reward": reward}
        out |= {"terminated": terminated, "truncated": truncated, "info": info}
        changed = (self.change.get(name, lambda x: x)(x) for name, x in out.items())
        return tuple(x for x in changed if x is not None)


class Changing(Walk):
    """What its steps return is changed, before gymnax makes an episode of it."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def step_env(self, key, state, action, params):
        return self.change(*super().step_env(key, state, action, params))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda o, s, r, d, i: (o, s, r, d), "returns 4 values, and not .observation, state, rew"),
        (lambda o, s, r, d, i: (o, s, r, d, d, i), "returns 6 values, and not"),
        (lambda o, s, r, d, i: o, "returns .*, and not"),
        (
            lambda o, s, r, d, i: (o, s.replace(time=s.time * 1.0), r, d, i),
            r"returns state\.time as float32\[\], `reset_env` as int32\[\]",
        ),
        (
            lambda o, s, r, d, i: (o[None], s, r, d, i),
            r"returns observation as float32\[1, 3\], `reset_env` as float32\[3\]",
        ),
        (lambda o, s, r, d, i: (o, (s, s), r, d, i), "returns a state of .*, `reset_env` one of"),
        (
            lambda o, s, r, d, i: (o, s, r, d, {"a": "b"}),
            r"returns info\['a'\] as str, not as numbers",
        ),
        (lambda o, s, r, d, i: (o, s, r, d, None), "returns info as NoneType, not as a dictionary"),
    ],
)
def test_an_episode_that_breaks_its_contract_is_told_before_gymnax_fails(change, message, float32):
    with pytest.raises(
        (ValueError, TypeError), match=rf"`env` \(=Changing\): `step_env` {message}"
    ):
        collected(Changing(change))


class Around(Environment):
    """One of one's own around another, which it calls `env`."""

    def __init__(self, env):
        super().__init__()
        self.env = env
        self.observation_space, self.action_space = env.observation_space, env.action_space

    @property
    def default_params(self):
        return self.env.default_params

    def reset_env(self, key, params):
        return self.env.reset_env(key, params)

    def step_env(self, key, state, action, params):
        observation, *others = self.env.step_env(key, state, action, params)
        return observation[None], *others


def test_each_episode_of_ones_own_is_asked_and_not_what_only_is_called_env(float32):
    message = r"Around\): `step_env` returns observation as float32\[1, 3\]"
    with pytest.raises(ValueError, match=message):
        collected(Around(Walk("vector")))
    named = Walk("vector")
    named.env = "Walk-v0"
    collected(named)


def test_a_state_has_to_count_its_steps():
    class Timeless(Walk):
        def reset_env(self, key, params):
            observation, state = super().reset_env(key, params)
            return observation, {"position": state.position}

        def step_env(self, key, state, action, params):
            return state["position"], state, jnp.float32(0), jnp.array(False), {}

    with pytest.raises(TypeError, match=r"Timeless\): `reset_env` returns a state without `time`"):
        collected(Timeless())


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (
            Breaking(spaces.Box(0, 1, (4,))),
            r"observation of shape \(3,\); `observation_space` says shape \(4",
        ),
        (Breaking(spaces.Discrete(4)), r"observation of shape \(3,\); .* says shape \(\)"),
        (
            Breaking(envs.MultiDiscrete([4, 4, 4])),
            r"observation of dtype float32; `observation_space` says whole numbers",
        ),
        (
            Breaking(spaces.Dict({"sign": spaces.Discrete(2)}), "parts"),
            r"observation of parts \['at', 'sign'\]; .* says parts \['sign'\]",
        ),
        (
            Breaking(spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)]), "vector"),
            r"observation of shape \(3,\); .* says parts \[0, 1\]",
        ),
        (
            Breaking(spaces.Dict({"sign": spaces.Discrete(2), "at": spaces.Discrete(3)}), "parts"),
            r"observation\['at'\] of shape \(3,\); `observation_space` says shape \(\)",
        ),
        (
            Breaking(observation=lambda x: x.astype(jnp.int32)),
            r"`step` returns observation as int32\[3\], `reset` as float32\[3\]",
        ),
        (
            Breaking(state=lambda s: s.replace(time=s.time.astype(jnp.float32))),
            r"`step` returns state\.time as float32\[\], `reset` as int32\[\]",
        ),
        (Breaking(state=lambda s: (s, s)), "`step` returns a state of .*, `reset` one of"),
        (Breaking(reward=lambda r: r[None]), r"returns reward as float32\[1\], not one number"),
        (
            Breaking(terminated=lambda x: x.astype(jnp.int32)),
            r"returns terminated as int32\[\], not a boolean",
        ),
        (Breaking(truncated=lambda x: None), "`step` returns 5 values, and not .*, truncated, inf"),
        (Breaking(info=lambda i: [i]), "`step` returns info as list, not as a dictionary"),
        (
            Breaking(info=lambda i: {"end": i["final_observation"]}),
            r"`step` returns info with \['end'\]; it must have 'final_observation'",
        ),
    ],
)
def test_an_environment_that_breaks_its_contract_is_told_where(env, message):
    with pytest.raises((ValueError, TypeError), match=rf"`env` \(=Breaking\): .*{message}"):
        collected(env)


@pytest.mark.parametrize(
    ("length", "limit", "ends"),
    [(100, 4, (False, True)), (4, 100, (True, False)), (4, 4, (True, True))],
)
def test_a_memory_begins_anew_after_either_end_of_an_episode(length, limit, ends):
    _, rollout, _ = collected(Tape(length, limit))
    count = np.tile([1, 2, 3, 4], 3)
    for env in range(2):
        np.testing.assert_array_equal(rollout.inputs.begin[:, env], count == 1)
        np.testing.assert_array_equal(rollout.memo[:, env], count)
        np.testing.assert_array_equal(rollout.episode_length[:, env], count)
        np.testing.assert_array_equal(rollout.terminated[:, env], (count == 4) & ends[0])
        np.testing.assert_array_equal(rollout.truncated[:, env], (count == 4) & ends[1])
    rewards = np.asarray(jax.jit(jax.vmap(Tape.reward))(count.astype(np.int32)))
    np.testing.assert_array_equal(rollout.reward[:, 0], rewards)
    # What was seen is what led to the step; the reward before it is the last one.
    np.testing.assert_array_equal(rollout.inputs.observation[1:4, 0, 1], [4, 5, 6])
    np.testing.assert_array_equal(rollout.inputs.reward[1:, 0], rewards[:-1])
    statistics = jax.jit(episode_statistics)(rollout)
    np.testing.assert_allclose(statistics["return"], rewards[:4].sum(), rtol=1e-6)
    assert (statistics["length"], statistics["episodes"]) == (4, 6)


def _in_numpy(tree):
    """Numbers that can be indexed without a program for each shape; a key as its words."""
    is_key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)  # noqa: E731
    data = jax.tree.map(lambda x: jax.random.key_data(x) if is_key(x) else x, tree)
    return jax.device_get(data)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("separate", [False, True])
def test_a_policy_is_prepared_once(separate):
    env = Tape(5, 7)
    of_space = env.observation_space(env.default_params), env.action_space(env.default_params)
    options = {"encoder_size": 0, "head_size": 4, "separate": separate, "key": KEY}
    memory = zoo.spec("gru", hidden=2)
    behavior = eqx.filter_jit(lambda: ByPolicy(actor_critic(*of_space, memory, **options)))()
    for policy in (Policy(behavior, *of_space), Policy(Recorded(behavior), *of_space)):
        prepared = policy.prepared()
        assert eqx.tree_equal(prepared.prepared(), prepared)


@pytest.mark.slow
@pytest.mark.parametrize("separate", [False, True])
def test_what_a_memory_keeps_in_a_rollout_changes_nothing(separate):
    """Two rollouts in segments and a policy's own steps, against steps by the memory itself."""
    actor = Actor(env := Tape(5, 7), env.default_params)
    spaces = env.observation_space(actor.params), env.action_space(actor.params)
    options = {"encoder_size": 4, "head_size": 4, "separate": separate, "key": KEY}
    memory = zoo.spec("transformer", hidden=4, window=4)
    behavior = eqx.filter_jit(lambda: ByPolicy(actor_critic(*spaces, memory, **options)))()
    start = jax.jit(lambda: actor.reset(behavior, 2, key=KEY))()

    @jax.jit
    def rollouts(state):
        def one(state, key):
            state, rollout, states = actor.collect(behavior, state, length=8, segment=4, key=key)
            return state, (rollout, states)

        return jax.lax.scan(one, state, jax.random.split(KEY, 2))

    @jax.jit
    def steps(state):
        keys = jnp.concatenate([jax.random.split(k, 8) for k in jax.random.split(KEY, 2)])

        def one(state, key):
            later, step = actor.step(behavior, state, key)
            return later, (step, state.memory)

        return jax.lax.scan(one, state, keys)

    end, (rollout, states) = _in_numpy(rollouts(start))
    expected_end, (expected, expected_states) = _in_numpy(steps(start))
    rollout = jax.tree.map(lambda x: x.reshape(16, *x.shape[2:]), rollout)
    assert (rollout.terminated | rollout.truncated).any()
    starts = jax.tree.map(lambda x: x[:, :2].reshape(4, *x.shape[2:]), states)
    expected_starts = jax.tree.map(lambda x: x[::4], expected_states)
    numbers = lambda *trees: jax.tree.map(np.float64, trees)  # noqa: E731
    assert_close(numbers(rollout, end, starts), numbers(expected, expected_end, expected_starts))

    policies = [Policy(behavior, *spaces), Policy(behavior, *spaces).prepared()]
    carried = [eqx.filter_jit(lambda p: p.init_state())(policy) for policy in policies]
    act = jax.jit(lambda policy, state, *seen: policy.act(state, *seen))
    for time in range(6):
        seen = expected.inputs.observation[time, 0], time in (0, 4)
        given = zip(policies, carried, strict=True)
        carried, actions = zip(*(act(*pair, *seen) for pair in given), strict=True)
        assert actions[0] == actions[1]


def test_a_policy_gives_actions_of_its_space_and_remembers_what_it_drew():
    class Loud(AbstractBehavior):
        def init_state(self):
            return jnp.zeros(())

        def __call__(self, state, inputs, key):
            return state + 1, Decision(inputs.action + 2)

    policy = Policy(Loud(), *[spaces.Box(-1, 1, (1,))] * 2)
    state = policy.init_state()
    for drawn in (2, 4):
        state, action = policy.act(state, jnp.zeros(1), begin=False)
        assert float(action[0]) == 1 and float(state.action[0]) == drawn


def test_the_final_observation_is_seen_from_the_state_before_the_reset_at_truncations_only():
    _, rollout, _ = collected(Tape(100, 4))
    state, observation, _, reward, begin = jax.tree.map(np.asarray, rollout.last)
    truncated = np.asarray(rollout.truncated)
    assert truncated.sum() == 6
    np.testing.assert_array_equal(state[truncated], 4)
    np.testing.assert_array_equal(observation[truncated][:, 1], 7)
    np.testing.assert_array_equal(reward[truncated], Tape.reward(jnp.int32(4)))
    # Even where the episode's first observation was its last but one.
    assert not begin.any() and not collected(Tape(100, 1))[1].last[4].any()
    for length, limit in ((4, 100), (4, 4)):  # after a termination nothing follows
        last = collected(Tape(length, limit))[1].last
        assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(last))


def test_states_are_kept_at_the_borders_of_segments():
    state, rollout, memories = collected(Tape(100, 5), segment=4)
    # Before steps 0, 4 and 8, and at the end.
    np.testing.assert_array_equal(memories[:, 0], [0, 4, 3, 2])
    np.testing.assert_array_equal(state.memory, [2, 2])
    again = collected(Tape(100, 5), segment=12)[1]
    jax.tree.map(np.testing.assert_array_equal, rollout, again)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"length": 0}, r"`length` \(=0\) must be a whole number of at least 1"),
        ({"segment": 0}, r"`segment` \(=0\) must be a whole number of at least 1"),
        ({"length": 5, "segment": 2}, r"`length` \(=5\) must be divisible by `segment` \(=2\)"),
        ({"envs": 0}, r"`envs` \(=0\) must be a whole number of at least 1"),
    ],
)
def test_how_much_is_collected_is_checked(given, message):
    with pytest.raises(ValueError, match=message):
        collected(Spans(), **given)


@pytest.mark.slow
def test_a_key_that_is_an_array_of_numbers_is_the_same_key():
    typed, untyped = (collected(Spans(), segment=4, key=k) for k in (KEY, jax.random.key_data(KEY)))
    jax.tree.map(np.testing.assert_array_equal, typed, untyped)


def test_actions_outside_the_space_are_clipped_for_the_environment_only():
    class Loud(Counting):
        def __call__(self, state, inputs, key):
            return state, Decision(jnp.full((state.shape[0], 1), 100.0))

        def at_end(self, state, inputs):
            return None

    env, params = envs.make("Pendulum-v1")
    actor, behavior = Actor(env, params), Loud()

    @jax.jit
    def run(key):
        state = actor.reset(behavior, 1, key=key)
        _, loud = actor.step(behavior, state, key)
        bound = jnp.full((1, 1), env.action_space(params).high)
        *_, reward, _, _, _ = jax.vmap(env.step, (None, 0, 0, None))(
            key, state.env_state, bound, params
        )
        return loud, reward

    loud, reward = run(KEY)
    assert loud.action.item() == 100
    np.testing.assert_allclose(loud.reward, reward, rtol=1e-6)


PLANES = spaces.Box(0, 255, (2, 3, 1), jnp.uint8)
BOX = spaces.Box(-1, 1, (2,))
PARTS = spaces.Dict({"at": BOX, "card": spaces.Discrete(3)})


@pytest.mark.parametrize(
    ("space", "observation", "message"),
    [
        (PLANES, np.zeros((1, 2, 3)), r"`observation` \(of shape \(1, 2, 3\)\) must be of shape"),
        (PLANES, np.zeros((1, 2, 3, 1)), r"\(of shape \(1, 2, 3, 1\)\) .* shape \(2, 3, 1\)"),
        (PLANES, np.zeros(6), r"\(of shape \(6,\)\)"),
        (spaces.Discrete(3), np.zeros(1, int), r"\(of shape \(1,\)\) must be of shape \(\)"),
        (spaces.Discrete(3), {"at": 1}, r"\(of parts \['at'\]\) must be of shape \(\)"),
        (spaces.Discrete(3), 0.5, r"`observation` \(of dtype float64\) must be of whole numbers"),
        (spaces.Discrete(3), "x", r"`observation` \(of dtype <U0\) must be of whole numbers"),
        (
            envs.MultiDiscrete([3, 2]),
            np.ones(2, np.float32),
            r"`observation` \(of dtype float32\) must be of whole numbers",
        ),
        (PARTS, {"at": np.zeros(2), "card": 0.5}, r"`observation`\['card'\] \(of dtype float64\)"),
        (PARTS, {"at": np.zeros(2)}, r"\(of parts \['at'\]\) must be of parts \['at', 'card'\]"),
        (PARTS, np.zeros(5), r"\(of shape \(5,\)\) must be of parts"),
        (
            BOX,
            np.zeros(2, complex),
            r"`observation` \(of dtype complex128\) must be of real numbers",
        ),
        (BOX, np.array(["a", "b"]), r"`observation` \(of dtype <U1\) must be of real numbers"),
        (BOX, np.array([None, 1.0]), r"`observation` \(of dtype object\) must be of real numbers"),
        (PARTS, {"at": np.zeros(3), "card": 0}, r"`observation`\['at'\] \(of shape \(3,\)\)"),
        (spaces.Discrete(3), 3, r"`observation` \(=3\) must be at least 0 and below 3\."),
        (
            spaces.Discrete(3),
            np.int8(-1),
            r"`observation` \(=.*-1.*\) must be at least 0 and below 3",
        ),
        (
            spaces.Discrete(3),
            jnp.int32(9),
            r"`observation` \(=.*9.*\) must be at least 0 and below",
        ),
        (
            envs.MultiDiscrete([3, 2]),
            np.int32([1, 2]),
            r"`observation` \(=.*\) must be at least 0 and below \(3, 2\)",
        ),
        (PARTS, {"at": np.zeros(2), "card": 3}, r"`observation`\['card'\] \(=3\) must be at least"),
    ],
)
def test_a_policy_names_an_observation_of_another_space(space, observation, message):
    policy = Policy(Counting(), space, spaces.Discrete(2))
    with pytest.raises(ValueError, match=message):
        policy.act(policy.init_state(), observation, begin=True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"key": 0}, r"`key` \(=0\) must be a PRNG key"),
        ({"key": jnp.ones(2)}, r"`key` \(=Array.*\) must be a PRNG key"),
        ({"key": jax.random.split(KEY, 2)}, r"`key` \(=.*\) must be a PRNG key"),
        ({"key": jax.random.split(jax.random.PRNGKey(0), 2)}, r"`key` \(=.*\) must be a PRNG key"),
        ({"begin": None}, r"`begin` \(=None\) must be one boolean"),
        ({"begin": "x"}, r"`begin` \(='x'\) must be one boolean"),
        ({"begin": 1}, r"`begin` \(=1\) must be one boolean"),
        ({"begin": jnp.ones(2, bool)}, r"`begin` \(=Array\(.*\) must be one boolean"),
        ({"reward": None}, r"`reward` \(=None\) must be one real number"),
        ({"reward": 1j}, r"`reward` \(=1j\) must be one real number"),
        ({"reward": jnp.ones(2)}, r"`reward` \(=Array\(.*\) must be one real number"),
        ({"state": None}, r"`state` \(=None\) must be a PolicyState, as `init_state` returns it"),
    ],
)
def test_a_policy_names_what_it_cannot_act_on(given, message, unhooked):
    policy = Policy(Counting(), spaces.Discrete(3), spaces.Discrete(2))
    right = {"state": policy.init_state(), "observation": 1, "begin": True, "reward": 0.0}
    policy.act(**right)
    with pytest.raises(TypeError, match=message):
        policy.act(**right | given)


class Keeping(Counting):
    """Its memory has another structure."""

    def init_state(self):
        return (super().init_state(),)

    def __call__(self, state, inputs, key):
        count, decision = super().__call__(state[0], inputs, key)
        return (count,), decision


def test_a_policy_names_the_state_of_another(unhooked):
    """An action of another space would be cast, a memory of another fail in its own words."""
    policies = [
        Policy(Counting(), BOX, spaces.Discrete(2)),
        Policy(Counting(), BOX, envs.MultiDiscrete([2, 2])),
        Policy(Counting(), BOX, BOX),
        Policy(Keeping(), BOX, spaces.Discrete(2)),
    ]
    policy, *others = policies
    for other, part in zip(others, ("action", "action", "memory"), strict=True):
        with pytest.raises(TypeError, match=rf"`state` \(of another {part}\) must be as this"):
            policy.act(other.init_state(), np.zeros(2), begin=True)
        other.act(jax.device_get(other.init_state()), np.zeros(2), begin=True)


@pytest.mark.parametrize("make_key", [jax.random.key, jax.random.PRNGKey])
def test_a_policy_acts_where_everything_is_traced(make_key):
    policy = Policy(Counting(), spaces.Discrete(3), spaces.Discrete(2))
    act = lambda *given, key: policy.act(*given, key=key)[1]  # noqa: E731
    of_two = jax.tree.map(
        lambda x: jnp.stack([x, x]),
        (policy.init_state(), jnp.int8(1), jnp.bool_(True), jnp.bfloat16(0)),
    )
    actions = jax.eval_shape(jax.vmap(act), *of_two, key=jnp.stack([make_key(0), make_key(1)]))
    assert actions.shape == (2,)


def test_a_policy_takes_numbers_of_python_and_numpy():
    policy = Policy(Counting(), PARTS, spaces.Discrete(2))
    for card in (1, np.int64(1), np.int32(1), jnp.int8(1)):
        policy.act(policy.init_state(), {"card": card, "at": np.zeros(2)}, begin=True)


# Evaluation


def acting(env, params, behavior):
    spaces = env.observation_space(params), env.action_space(params)
    return Actor(env, params), Policy(behavior, *spaces)


def test_a_policy_of_other_spaces_is_refused():
    """A table's, or a discrete observation's, would act all the same, without meaning."""
    env, params = envs.make("gravity")
    actor, policy = acting(env, params, Counting())
    other, of_other = acting(*envs.make("RepeatFirstEasy"), Counting())
    for start in (
        lambda: evaluate(other, policy, episodes=1, key=KEY),
        lambda: play(env, params, of_other, print, episodes=1, steps=1, key=KEY),
        lambda: episode_sensitivities(actor, of_other, episodes=1, key=KEY),
    ):
        with pytest.raises(
            ValueError, match=r"`env` \(=.*\) has another observation_space than .* instead of Disc"
        ):
            start()
    of_actions = Policy(Counting(), policy.observation_space, spaces.Discrete(9))
    with pytest.raises(ValueError, match=r"another action_space .* instead of Discrete\(9"):
        evaluate(actor, of_actions, episodes=1, key=KEY)


def test_an_evaluation_keeps_what_the_first_episode_came_to():
    """Environments whose episode has ended go on with another: it must not be counted."""
    env = Spans()
    actor, policy = acting(env, env.default_params, Counting())
    played = jax.jit(lambda key: evaluate(actor, policy, episodes=32, key=key))(KEY)
    drawn = actor.reset(policy.behavior, 32, key=jax.random.split(KEY)[0]).observation
    assert len(set(drawn.tolist())) > 4
    np.testing.assert_array_equal(played["lengths"], drawn)
    np.testing.assert_array_equal(played["returns"], drawn)


@pytest.mark.slow
def test_an_evaluation_ends_at_the_limit_and_draws_if_asked():
    env = Spans()
    actor, policy = acting(env, env.default_params, Counting())
    played = evaluate(actor, policy, episodes=16, max_steps=3, key=KEY)
    assert played["lengths"].max() <= 3
    with pytest.raises(ValueError, match=r"`episodes` \(=0\) must be a whole number of at least 1"):
        evaluate(actor, policy, episodes=0, key=KEY)


class Remembers(Counting):
    """Answers with the sign that was shown at the start of a T-maze of one step."""

    def __call__(self, state, inputs, key):
        state = jnp.where(inputs.begin, inputs.observation, state)
        return state, Decision(jnp.where(inputs.begin, 1, 2 * state))


def test_an_evaluation_carries_the_memory_within_an_episode():
    env, params = envs.make("t_maze", length=1)
    actor, policy = acting(env, params, Remembers())
    played = evaluate(actor, policy, episodes=16, key=KEY)
    np.testing.assert_array_equal(played["returns"], 4)
    np.testing.assert_array_equal(played["lengths"], 2)
    shown = []
    episodes = play(
        *envs.make("t_maze", length=1),
        policy,
        lambda state, observation: shown.append(int(observation)),
        episodes=5,
        steps=100,
        key=KEY,
    )
    assert [(e.total, e.length, e.complete) for e in episodes] == [(4.0, 2, True)] * 5
    assert len(shown) == 5 * 3 and set(shown[::3]) == {0, 1}


def test_a_play_that_is_cut_is_not_complete():
    episodes = play(
        *envs.make("t_maze", length=3), None, lambda *_: None, episodes=1, steps=2, key=KEY
    )
    assert [(e.length, e.complete) for e in episodes] == [(2, False)]
