"""PPO: replay, gradients, truncation, normalization, resuming, bad input."""

import dataclasses
import functools
import itertools
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import agents
import zoo
from agents.evaluation import evaluate
from agents.networks import Inputs
from agents.rollout import Actor
from agents.segments import to_starts
from tests.cases import slow_but

# Episodes of 5 steps, so that several end inside every rollout.
CHAIN = {"env": "MemoryChain-bsuite", "env_options": {"memory_length": 4}}
SMALL = {
    "num_envs": 4,
    "rollout_length": 16,
    "minibatches": 2,
    "epochs": 2,
    "encoder_size": 6,
    "head_size": 6,
}
GRADIENTS = {
    "bptt": agents.BPTT(),
    "tbptt": agents.TBPTT(4),
    "rtrl": agents.RTRL(4),
    "rtrl step": agents.RTRL(1),
    "rtrl refreshed": agents.RTRL(4, refresh="epoch"),
}


def small(gradient="rtrl", memory="rtu", **options):
    options = CHAIN | SMALL | options
    cell_options = options.pop("memory_options", {})
    spec = zoo.spec(memory, hidden=5, **cell_options)
    return agents.PPO(memory=spec, gradient=GRADIENTS[gradient], **options)


def iterations(ppo, count, key=0):
    state = jax.jit(lambda k: ppo.init(key=k))(jax.random.key(key))
    iterate = jax.jit(ppo.iterate)
    metrics = []
    for _ in range(count):
        state, measured = iterate(state)
        metrics.append(measured)
    assert iterate._cache_size() == 1, "a second call compiled again"
    return state, metrics


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    ("gradient", "memory"),
    [
        *(("rtrl", "rtu"), ("bptt", "rtu"), ("tbptt", "rtu"), ("rtrl step", "rtu")),
        *(("rtrl refreshed", "rtu"), ("rtrl", "gru"), ("rtrl", "nonlinear")),
    ],
)
def test_the_first_ratio_is_one(gradient, memory):
    options = {"memory_options": {"nonlinear": True}} if memory == "nonlinear" else {}
    ppo = small(gradient, "gru" if memory == "gru" else "rtu", **options)
    state, metrics = iterations(ppo, 4)
    assert int(metrics[-1]["episodes"]) > 0, "no reset inside the rollout"
    for measured in metrics:
        assert float(measured["ratio_error"]) < 1e-12
    assert all(
        jnp.all(jnp.isfinite(x))
        for x in jax.tree.leaves(eqx.filter(state.network, eqx.is_inexact_array))
    )


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["bptt", "tbptt", "rtrl"])
def test_the_first_ratio_is_one_in_float32(gradient, float32):
    ppo = small(gradient, previous_action=True, previous_reward=True, rollout_length=64)
    _, metrics = iterations(ppo, 5)
    assert max(float(m["ratio_error"]) for m in metrics) <= 1e-6


def rollout_of(ppo, key=1):
    """A network, a rollout from the beginning of episodes, and the carries."""
    state = jax.jit(lambda k: ppo.init(key=k))(jax.random.key(key))
    actor = Actor(*ppo.environment)
    segment = ppo.gradient.segment_length(ppo.rollout_length)
    _, rollout, starts = jax.jit(
        lambda n, r, k: actor.collect(n, r, length=ppo.rollout_length, segment=segment, key=k)
    )(state.network, state.runner, jax.random.key(key + 1))
    carries = jax.jit(
        lambda n, i: ppo.gradient.carries(
            n, (state.runner.memory, state.sensitivity), i, segment=segment
        )
    )(state.network, rollout.inputs)
    return state, rollout, starts, carries


def gradient_of(ppo):
    """The gradient of a fixed loss over a rollout, by the algorithm's own mechanism."""
    draw = np.random.default_rng(0)
    observation, reward, weight, action, begin = map(
        jnp.asarray,
        (
            *(draw.normal(size=(16, 4, *more)) for more in ((3,), (), ())),
            draw.integers(2, size=(16, 4)),
            draw.random((16, 4)) < 0.15,
        ),
    )
    inputs = Inputs(observation, action, reward, begin)
    segment = ppo.gradient.segment_length(ppo.rollout_length)
    pieces = agents.segments.to_segments((inputs, weight), segment)

    @eqx.filter_grad
    def gradient(network):
        fresh = network.memory.init_state(), ppo.gradient.init_sensitivity(network.memory)
        start = jax.tree.map(lambda x: jnp.broadcast_to(x, (4, *x.shape)), fresh)
        _, carries = ppo.gradient.carries(network, start, inputs, segment=segment)
        carries = jax.lax.stop_gradient(to_starts(carries))
        policy, value = ppo.gradient.outputs(network, carries, pieces[0])
        return jnp.sum(pieces[1] * (value + policy.logits.sum(-1)) ** 2)

    return jax.jit(lambda key: gradient(ppo.network(key=key)))(jax.random.key(1))


@functools.cache
def bptt_gradient(memory):
    return gradient_of(small("bptt", memory))


@pytest.mark.parametrize(
    ("gradient", "memory"),
    slow_but(
        [("rtrl", "rtu")],
        itertools.product(
            ("tbptt", "rtrl", "rtrl step", "whole tbptt", "whole rtrl"), ("rtu", "gru")
        ),
    ),
)
def test_the_three_gradients_agree_where_they_must(gradient, memory):
    whole = {"whole tbptt": agents.TBPTT(16), "whole rtrl": agents.RTRL(16)}
    ppo = dataclasses.replace(small(memory=memory), gradient=(GRADIENTS | whole)[gradient])
    one, other = (
        jax.tree.map(np.asarray, network) for network in (bptt_gradient(memory), gradient_of(ppo))
    )

    def difference(part):
        pairs = zip(jax.tree.leaves(part(one)), jax.tree.leaves(part(other)), strict=True)
        return max(np.abs(a - b).max() / np.abs(a).max() for a, b in pairs)

    if gradient in whole:
        assert difference(lambda n: n) < 1e-9
    elif gradient == "tbptt":
        assert difference(lambda n: n.memory) > 1e-3
    else:
        # In shorter segments the memory's own parameters still have the whole gradient; the
        # encoder learns from the present segment only.
        assert difference(lambda n: (n.memory, n.actor, n.critic)) < 1e-9
        assert difference(lambda n: n.encoder) > 1e-3


def test_tbptt_reaches_exactly_the_steps_it_says():
    memory = zoo.get("rtu", hidden=3, inputs=2, activation="identity")
    gradient = agents.TBPTT(4)

    class Network(eqx.Module):
        memory: zoo.AbstractMemory

        def scan(self, state, inputs):
            state, ys = self.memory.scan(state, inputs.observation, inputs.begin)
            return state, (ys, ys)

    def output(xs):
        begin = jnp.zeros((12, 1), bool)
        inputs = Inputs(xs[:, None], begin, begin.astype(xs.dtype), begin)
        network = Network(memory)
        start = jax.tree.map(lambda x: x[None], memory.init_state())
        _, (states, _) = gradient.carries(network, (start, None), inputs, segment=4)
        pieces = agents.segments.to_segments(inputs, 4)
        carries = to_starts((states, None))
        return gradient.outputs(network, carries, pieces)[0].sum(-1).T.ravel()

    xs = jax.random.normal(jax.random.key(0), (12, 2))
    reach = jnp.any(jax.jit(jax.jacrev(output))(xs) != 0, axis=-1)
    step = np.arange(12)
    same = step[:, None] // 4 == step[None] // 4
    np.testing.assert_array_equal(reach, same & (step[None] <= step[:, None]))


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["bptt", "tbptt", "rtrl", "rtrl step"])
def test_recomputed_carries_equal_the_stored_ones_while_parameters_stand(gradient):
    _, _, starts, (_, (states, _)) = rollout_of(small(gradient))
    for stored, recomputed in zip(jax.tree.leaves(starts), jax.tree.leaves(states), strict=True):
        np.testing.assert_allclose(stored, recomputed, atol=1e-14)


@pytest.mark.slow
def test_truncation_bootstraps_from_the_state_before_the_reset():
    ppo = small("bptt", env="CartPole-v1", env_options={"max_steps_in_episode": 5})
    state, rollout, _, _ = rollout_of(ppo)
    env, params = ppo.environment
    truncated = np.asarray(rollout.truncated & ~rollout.terminated)
    assert truncated.sum() >= 4
    # The dynamics are deterministic: play the last step again to see the final observation.
    time, index = (int(i[0]) for i in np.nonzero(truncated))
    memory = state.network.memory.init_state()
    inputs = jax.tree.map(lambda x: x[:, index], rollout.inputs)
    first = max(t for t in range(time + 1) if bool(inputs.begin[t]))
    step = eqx.filter_jit(state.network.step)
    for t in range(first, time + 1):
        memory, _ = step(memory, jax.tree.map(lambda x, t=t: x[t], inputs))
    env_state = _cartpole_state(env, params, inputs.observation[time], time - first)
    *_, info = env.step(jax.random.key(0), env_state, rollout.action[time, index], params)
    last = Inputs(
        info["final_observation"],
        rollout.action[time, index],
        rollout.reward[time, index],
        jnp.array(False),
    )
    _, (_, expected) = step(memory, last)
    np.testing.assert_allclose(rollout.final_value[time, index], expected, rtol=1e-6)
    assert np.all(np.asarray(rollout.final_value)[~np.any(truncated, axis=1)] == 0)


def _cartpole_state(env, params, observation, time):
    _, like = env.reset(jax.random.key(0), params)
    x, x_dot, theta, theta_dot = observation
    return like.replace(
        x=x, x_dot=x_dot, theta=theta, theta_dot=theta_dot, time=jnp.asarray(time, like.time.dtype)
    )


@pytest.mark.slow
def test_previous_action_and_reward_are_zero_where_an_episode_begins():
    ppo = small(previous_action=True, previous_reward=True)
    network = ppo.network(key=jax.random.key(0))
    observation = jnp.zeros(3, jnp.float32)
    quiet = Inputs(observation, jnp.int32(0), jnp.float32(0), jnp.array(True))
    loud = Inputs(observation, jnp.int32(1), jnp.float32(9), jnp.array(True))
    np.testing.assert_array_equal(network.encode(quiet), network.encode(loud))
    later = eqx.tree_at(lambda i: i.begin, loud, jnp.array(False))
    assert jnp.any(network.encode(later) != network.encode(loud))


@pytest.mark.slow
def test_observation_and_reward_normalization_follow_the_data():
    ppo = small(
        env="CartPole-v1", env_options={}, normalize_observation=True, normalize_reward=True
    )
    state, metrics = iterations(ppo, 4)
    assert float(state.observation_statistics.count) == 4 * ppo.steps_per_iteration
    assert state.observation_statistics.mean.shape == (4,)
    assert not jnp.allclose(state.observation_statistics.variance, 1)
    assert float(state.return_statistics.variance) > 1
    assert all(float(m["ratio_error"]) < 1e-12 for m in metrics)


@pytest.mark.slow
def test_continuous_actions():
    ppo = small(env="Pendulum-v1", env_options={}, previous_action=True)
    state, metrics = iterations(ppo, 3)
    assert state.network.log_std.shape == (1,)
    assert all(float(m["ratio_error"]) < 1e-10 for m in metrics)
    assert np.isfinite(float(metrics[-1]["loss"]))


@pytest.mark.slow
def test_staleness_is_one_where_nothing_moves_and_less_where_it_does():
    still = small(staleness_every=2, learning_rate=1e-14, epochs=1)
    _, metrics = iterations(still, 3)
    assert float(metrics[0]["staleness"]) == pytest.approx(1, abs=1e-8)
    assert np.isnan(float(metrics[1]["staleness"]))
    _, metrics = iterations(small(staleness_every=1, learning_rate=0.05), 3)
    assert float(metrics[-1]["staleness"]) < 1 - 1e-6


@pytest.mark.slow
def test_seeds_side_by_side_equal_seeds_alone():
    ppo = small()
    keys = jax.random.split(jax.random.key(0), 2)
    together = jax.vmap(lambda k: ppo.init(key=k), axis_name="seed")(keys)
    together, measured = jax.jit(jax.vmap(ppo.iterate, axis_name="seed"))(together)
    alone, expected = jax.jit(ppo.iterate)(ppo.init(key=keys[1]))
    for name, value in expected.items():
        np.testing.assert_allclose(measured[name][1], value, rtol=1e-8, atol=1e-12, err_msg=name)
    both = zip(jax.tree.leaves(together.network), jax.tree.leaves(alone.network), strict=True)
    for a, b in both:
        np.testing.assert_allclose(a[1], b, atol=1e-10)


@pytest.mark.slow
def test_evaluation_carries_and_resets_the_memory():
    """A hand-made policy that answers with the context shown at the first step."""

    class Remembers(eqx.Module):
        def step(self, memory, inputs):
            memory = jnp.where(inputs.begin, 0.0, memory)
            memory = memory + inputs.observation[2]
            logits = jnp.stack([-memory, memory])
            return memory, (agents.distributions.Categorical(logits), memory)

        @property
        def memory(self):
            return self

        def init_state(self):
            return jnp.zeros(())

    actor = Actor(*small().environment)
    run = jax.jit(lambda k: evaluate(actor, Remembers(), episodes=32, key=k))
    played = run(jax.random.key(3))
    best = float(jnp.max(played["returns"]))
    assert best > 0
    np.testing.assert_array_equal(played["returns"], best)
    assert len(set(np.asarray(played["lengths"]).tolist())) == 1


def test_configuration_round_trip():
    for gradient in GRADIENTS:
        ppo = small(gradient)
        again = agents.PPO.from_dict(json.loads(json.dumps(ppo.to_dict())))
        assert again == ppo


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rollout_length": 18}, r"`rollout_length` \(=18\) must be divisible by `segment` \(=4\)"),
        ({"minibatches": 3}, r"`minibatches` \(=3\) must divide the number of segments \(=16"),
        ({"num_envs": 0}, r"`num_envs` \(=0\) must be a whole number of at least 1"),
        ({"discount": 1.5}, r"`discount` \(=1.5\) must be in \[0, 1\]"),
        ({"learning_rate": 0.0}, r"`learning_rate` \(=0.0\) must be above 0"),
        ({"anneal_steps": 0}, r"`anneal_steps` \(=0\) must be above 0, or None"),
        ({"value_clip": 0.0}, r"`value_clip` \(=0.0\) must be above 0, or None"),
        ({"entropy_coefficient": -0.1}, r"`entropy_coefficient` \(=-0.1\) must be at least 0"),
        ({"env": "RepeatPreviousEasie", "env_options": {}}, "RepeatPreviousEasy"),
        (
            {"env": "RepeatPreviousEasy", "env_options": {}, "normalize_observation": True},
            r"`normalize_observation` \(=True\) needs a Box observation",
        ),
    ],
)
def test_bad_configuration_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        small(**options)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("memory", "rtu", r"`memory` \(='rtu'\) must be a recipe, such as zoo.spec"),
        ("gradient", "rtrl", r"`gradient` \(='rtrl'\) must be a choice, such as agents.RTRL"),
    ],
)
def test_names_in_place_of_choices_are_refused(name, value, message):
    ppo = small()
    object.__setattr__(ppo, name, value)  # the suite's own checks of types would come first
    with pytest.raises(TypeError, match=message):
        ppo.__post_init__()


def test_bad_gradients_are_named():
    for choice, name in ((agents.RTRL(0), "segment"), (agents.TBPTT(True), "length")):
        with pytest.raises(ValueError, match=rf"`{name}` .* must be a whole number of at least 1"):
            choice.segment_length(16)
    with pytest.raises(ValueError, match=r"`refresh` \(='always'\) must be one of never, epoch"):
        agents.RTRL(refresh="always")
    with pytest.raises(
        ValueError, match=r"`gradient` \(='RTLR'\) must be one of TBPTT, RTRL, BPTT"
    ):
        agents.gradients.gradient_from_dict({"name": "RTLR"})


@pytest.mark.slow
@pytest.mark.parametrize("gradient", [agents.RTRL(8), agents.TBPTT(8), agents.BPTT()])
def test_learns_what_no_memoryless_agent_can(gradient, float32):
    def evaluation(memory):
        ppo = agents.PPO(
            env="RepeatPreviousEasy", memory=zoo.spec(memory, hidden=64), gradient=gradient
        )
        state = ppo.init(key=jax.random.key(0))
        iterate = jax.jit(ppo.iterate, donate_argnums=0)
        for _ in range(300_000 // ppo.steps_per_iteration):
            state, _ = iterate(state)
        played = jax.jit(lambda s, k: ppo.evaluate(s, key=k, episodes=64))
        return float(played(state, jax.random.key(1))["evaluation_return"])

    assert evaluation("rtu") > 0.9
    assert evaluation("mlp") < -0.2
