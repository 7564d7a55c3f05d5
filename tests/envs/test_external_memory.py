"""External memories against a reference in plain Python, over whole episodes and resets."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import Environment, EnvParams

import agents
import zoo
from agents import envs
from agents.envs import wrappers
from agents.envs.remembering import external_memory
from tests.cases import slow_but
from zoo.options import parse_options

STEPS = 60


class _TypedDiscrete(spaces.Discrete):
    """As some environments have it: of another integer type than gymnax's."""

    def __init__(self, n, dtype):
        super().__init__(n)
        self.dtype = dtype


@struct.dataclass
class ProbeState:
    time: Any
    action: Any
    observation: Any


class Probe(Environment):
    """Random observations; ends at random or at a time limit, and reveals the action it got."""

    def __init__(self, observations, actions):
        super().__init__()
        self.spaces = observations, actions

    @property
    def default_params(self):
        return EnvParams(max_steps_in_episode=7)

    @property
    def num_actions(self):
        return self.spaces[1].n

    def observation_space(self, params):
        return self.spaces[0]

    def action_space(self, params):
        return self.spaces[1]

    def reset_env(self, key, params):
        observation = self.spaces[0].sample(key)
        action = jnp.zeros(self.spaces[1].shape, self.spaces[1].dtype)
        return observation, ProbeState(jnp.int32(0), action, observation)

    def step_env(self, key, state, action, params):
        observation = self.spaces[0].sample(key)
        action = jnp.asarray(action, self.spaces[1].dtype)
        ends = jax.random.bernoulli(key, 0.15)
        state = ProbeState(state.time + 1, action, observation)
        reward = jnp.sum(action).astype(jnp.float32)
        return observation, state, reward, ends, {"action": action}


class Reference:
    """The rules of `ExternalMemory`, one list of slots."""

    def __init__(self, kind, k, boxes, counts):
        self.kind, self.k, self.boxes, self.counts = kind, k, boxes, counts
        self.empty()

    def empty(self):
        self.bits, self.slots = [0] * self.k, []

    def write(self, observation, action, write):
        if self.kind == "B":
            self.bits = [int(bit) for bit in reversed(f"{write:b}".zfill(self.k))][: self.k]
        elif self.kind == "K" or write:
            kept = list(observation)
            if self.kind == "OA" and not self.boxes:
                kept += list(action)
            elif self.kind == "OA":
                for number, count in zip(action, self.counts, strict=True):
                    kept += [float(number == value) for value in range(count)]
            self.slots = [kept, *self.slots][: self.k]

    def seen(self, observation, numbers):
        if self.kind == "B":
            return [*observation, *self.bits]
        seen = list(observation)
        for slot in self.slots:
            seen += [1.0, *slot] if self.boxes else [x + 1 for x in slot]
        return seen + [0] * (self.k - len(self.slots)) * (numbers + self.boxes)


D4, D3 = spaces.Discrete(4), spaces.Discrete(3)
PAIR, MOVES = envs.MultiDiscrete((3, 2)), envs.MultiDiscrete((2, 5))
BOX = spaces.Box(-1.0, 2.0, (2, 3), jnp.float32)
TORQUE = spaces.Box(-1.0, 1.0, (1,), jnp.float32)

GRID = [(D4, D3, f"{kind}{k}") for kind in ("K", "B", "O", "OA") for k in (0, 1, 2, 4)]
OTHERS = [
    *((PAIR, D3, memory) for memory in ("K2", "B1", "O1", "OA2")),
    *((D4, MOVES, memory) for memory in ("K1", "B2", "O2", "OA1")),
    *((BOX, D3, memory) for memory in ("OA2", "K2", "B2", "O2", "O0", "OA0")),
    *((BOX, MOVES, memory) for memory in ("O2", "OA2", "K1")),
    (BOX, TORQUE, "K1"),
    (D4, TORQUE, "K2"),
]


def describe(value):
    return value if isinstance(value, str) else repr(value).split("(")[0]


QUICK = ("K2", "B2", "O2", "OA2")


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    ("observations", "actions", "memory"),
    [
        pytest.param(*row, marks=() if row[1] is D3 and row[2] in QUICK else pytest.mark.slow)
        for row in GRID + OTHERS
    ],
    ids=describe,
)
def test_update_rules(observations, actions, memory):
    """Every observation, final one and action passed on, for random actions over many resets."""
    env = envs.ExternalMemory(Probe(observations, actions), memory)
    params = env.default_params
    space, choices = env.observation_space(params), env.action_space(params)

    def step(state, key):
        key_action, key_step = jax.random.split(key)
        action = choices.sample(key_action)
        out = env.step(key_step, state, action, params)
        own = out[1].env_state.observation, out[5]["action"]
        final = out[5]["final_observation"]
        return out[1], (action, out[0], final, out[3] | out[4], own, space.contains(out[0]))

    @jax.jit
    def run(key):
        first, state = env.reset(key, params)
        keys = jax.random.split(jax.random.key(1), STEPS)
        return first, state, jax.lax.scan(step, state, keys)[1]

    first, state, record = run(jax.random.key(0))
    record = jax.device_get(record)
    action, observation, final, done, (own, passed), holds = record
    own, passed = own.reshape(STEPS, -1), passed.reshape(STEPS, -1)

    kind, k = memory.rstrip("0124"), int(memory[-1])
    boxes = isinstance(observations, spaces.Box)
    counts = {D3: (3,), MOVES: (2, 5)}.get(actions, ())
    reference = Reference(kind, k, boxes, counts)
    size = own.shape[1]
    numbers = size + (0 if kind != "OA" else sum(counts) if boxes else len(counts))
    assert len(first) == size + k * (1 if kind == "B" else numbers + boxes)
    present = np.ravel(state.env_state.observation)
    np.testing.assert_allclose(first, reference.seen(present, numbers), rtol=1e-6)
    base = actions.n if isinstance(actions, spaces.Discrete) else None
    writes = 2**k if kind == "B" else 2 if kind != "K" and k else 1
    assert set(np.ravel(done)) == {True, False} and holds.all() and space.contains(first)
    for t in range(STEPS):
        chosen = np.ravel(action[t])
        if writes == 1:
            expected, write = chosen, 0
        elif base is None:
            expected, write = chosen[:-1], chosen[-1]
        else:
            expected, write = chosen % base, int(chosen[0] // base)
        np.testing.assert_array_equal(passed[t], expected)
        reference.write(present, passed[t], write)
        # The final observation's own part is the observation's, except at an end.
        before_reset = reference.seen(final[t][:size], numbers)
        np.testing.assert_allclose(final[t], before_reset, rtol=1e-6)
        present = own[t]
        if done[t]:
            reference.empty()
        else:
            np.testing.assert_array_equal(final[t], observation[t])
        np.testing.assert_allclose(observation[t], reference.seen(present, numbers), rtol=1e-6)
    if writes > 1 and base is not None:
        assert choices.n == env.num_actions == base * writes
        assert len(np.unique(action // base)) == writes


@pytest.mark.slow
def test_the_environment_behind_it_is_the_same():
    """Rewards, flags, states and the first part of observations, with the same keys."""
    (plain, params), (env, _) = envs.make("gravity"), envs.make("gravity", external_memory="OA2")
    key = jax.random.key(0)
    observation, state = plain.reset(key, params)
    seen, augmented = env.reset(key, params)
    steps = jax.jit(plain.step), jax.jit(env.step)
    for t, action in enumerate(np.random.default_rng(1).integers(8, size=120).tolist()):
        key = jax.random.fold_in(key, t)
        observation, state, *rest, _ = steps[0](key, state, action % 4, params)
        seen, augmented, *others, _ = steps[1](key, augmented, action, params)
        assert int(seen[0]) == int(observation)
        jax.tree.map(np.testing.assert_array_equal, (state, rest), (augmented.env_state, others))


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    "pattern",
    slow_but(
        [(False, True, True), (True, False, True)],
        itertools.product((False, True), repeat=3),
        several=False,
    ),
    ids=str,
)
def test_nothing_leaks_across_a_reset(pattern):
    """After an end, the memory is that of a fresh episode, whatever was written at it."""
    base = envs.RepeatPrevious()
    env = envs.ExternalMemory(base, "O2")
    _, state = env.reset(jax.random.key(0), base.default_params)
    slots: list[int] = []
    for t, ends in enumerate(pattern):
        params = base.default_params.replace(
            max_steps_in_episode=int(state.time) + (1 if ends else 100)
        )
        pushed = int(state.observation[0]) + 1
        seen, state, *_, info = env.step(jax.random.key(t), state, 4 + t, params)  # pushes
        slots = [pushed, *slots][:2]
        padded = slots + [0] * (2 - len(slots))
        np.testing.assert_array_equal(info["final_observation"][1:], padded)
        assert bool(info["truncated"]) == ends
        if ends:
            slots, padded = [], [0, 0]
        np.testing.assert_array_equal(seen[1:], padded)
        np.testing.assert_array_equal(state.memory.ravel(), padded)


@pytest.mark.slow
def test_wrappers_inside_and_outside():
    """Where a limit outside ends an episode, the memory is emptied and statistics inside stay."""
    base = envs.PositionOnlyPendulum()
    inside = envs.ExternalMemory(wrappers.NormalizeObservation(base), "K1")
    env, params = wrappers.TimeLimit(inside, 2), base.default_params
    step = jax.jit(env.step)
    _, state = env.reset(jax.random.key(0), params)
    slots, counts = [], []
    for t in range(4):
        observation, state, *_ = step(jax.random.key(t), state, jnp.zeros(1, jnp.float32), params)
        slots.append(float(observation[2]))
        counts.append(int(state.env_state.env_state.own.count))
    assert slots == [1, 0, 1, 0]  # whether something is in the slot
    assert counts == [2, 4, 5, 7]  # a step and, where an episode ended, a first observation
    assert not env.is_terminated(state, params)

    limited = envs.ExternalMemory(wrappers.TimeLimit(base, 5), "K1")
    assert envs.episode_steps(limited, params) == 5


KINDS = ("K1", "B1", "O1", "OA1")


@pytest.mark.slow
def test_every_environment_takes_the_kinds_that_its_spaces_allow():
    taken = dict.fromkeys(KINDS, 0)
    for name in envs.names():
        if name.startswith("brax/"):
            continue  # dear to make, and their spaces are those of Pendulum
        env, params = envs.make(name)
        observation, action = env.observation_space(params), env.action_space(params)
        discrete = [
            isinstance(space, spaces.Discrete | envs.MultiDiscrete)
            for space in (observation, action)
        ]
        allowed = {
            "K1": discrete[0] or isinstance(observation, spaces.Box),
            "B1": discrete[1],
            "O1": discrete[1],
            "OA1": discrete[1],
        }
        for memory in KINDS:
            if allowed[memory]:
                augmented = envs.ExternalMemory(env, memory)
                assert augmented.name == f"{env.name}-{memory}"
                assert augmented.observation_space(params).shape[0] > 1
                taken[memory] += 1
            else:
                with pytest.raises(ValueError, match=rf"`external_memory` \(='{memory}'\) needs"):
                    envs.ExternalMemory(env, memory)
    assert min(taken.values()) > 5


@pytest.mark.parametrize(
    ("name", "memory", "message"),
    [
        ("gravity", "X1", r"`external_memory` \(='X1'\) must be K, B, O or OA and a"),
        ("gravity", "B", r"`external_memory` \(='B'\) must be"),
        ("gravity", "k1", r"`external_memory` \(='k1'\) must be"),
        ("gravity", "B1000", r"a size from 0 to 999, such as 'B1'\."),
        ("gravity", "B30", r"must leave fewer than 2\^31 actions, .* 4 by 2\^30\."),
        (
            "Pendulum-v1",
            "O1",
            r"`external_memory` \(='O1'\) needs actions that are Discrete or MultiDiscrete, but "
            r"those of Pendulum-v1 are Box",
        ),
        (
            "Pendulum-v1",
            "OA1",
            r"`external_memory` \(='OA1'\) needs actions that are Discrete or MultiDiscrete, but "
            r"those of Pendulum-v1 are Box",
        ),
    ],
)
def test_what_cannot_be(name, memory, message):
    with pytest.raises(ValueError, match=message):
        envs.make(name, external_memory=memory)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("memory", slow_but(["OA2"], ["OA2", "K2", "B2", "O2"]))
@pytest.mark.parametrize(
    ("observations", "dtype"),
    [
        (spaces.Box(0, 9, (4,), jnp.int32), jnp.float32),
        (spaces.Box(0, 255, (2, 2), jnp.uint8), jnp.float32),
        (_TypedDiscrete(7, jnp.uint8), jnp.int32),
    ],
)
def test_the_space_tells_numbers_from_vectors_and_not_the_type(observations, dtype, memory):
    env = external_memory.ExternalMemory(Probe(observations, spaces.Discrete(3)), memory)
    params = env.default_params
    observation, state = env.reset(jax.random.key(0), params)
    pushed, *_ = env.step(jax.random.key(1), state, jnp.int32(4), params)
    space = env.observation_space(params)
    for shown in (observation, pushed):
        assert shown.shape == space.shape and shown.dtype == space.dtype == dtype
        assert space.contains(shown)


def test_of_several_numbers_the_write_is_one_more():
    """So it multiplies nothing: 2^30 writes beside counts of 8 are fewer than 2^31 actions."""
    env, params = envs.make("BattleshipEasy", external_memory="B30")
    assert env.action_space(params).nvec == (8, 8, 2**30)


def test_a_memory_is_named_by_text():
    with pytest.raises(TypeError, match=r"`external_memory` \(=1\) must be text, such as 'B1'\."):
        external_memory.parse(1)


@pytest.mark.slow
def test_from_the_command_line():
    options = parse_options(["external_memory=B1", "rows=4"], "--env-options")
    env, params = envs.make("gravity", **options)
    assert (env.memory, env.env.rows, env.num_actions) == ("B1", 4, 8)
    algorithm = agents.PPO(
        env="gravity",
        env_options=options,
        memory=zoo.spec("mlp", hidden=8),
        gradient=agents.TBPTT(length=8),
        num_envs=4,
        rollout_length=16,
    )
    state = jax.eval_shape(lambda key: algorithm.init(key=key), jax.random.key(0))
    shapes = jax.eval_shape(algorithm.iterate, state)[0]
    assert jax.tree.structure(shapes) == jax.tree.structure(state)
    assert envs.episode_steps(env, params) == 100
