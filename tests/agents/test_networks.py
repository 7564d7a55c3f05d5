"""Distributions, spaces, inputs and the network with a memory, each alone."""

import re
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces

import zoo
from agents.envs import MultiDiscrete
from agents.networks import (
    Categorical,
    Gaussian,
    Inputs,
    MultiCategorical,
    Recurrent,
    TanhGaussian,
    actor_critic,
    sparse_recurrent,
)
from agents.networks.layers import check_normalized
from agents.networks.spaces import by_content, encode, is_alike, is_discrete, width


def test_categorical_against_its_probabilities():
    logits = jnp.array([[0.3, -1.0, 2.0], [0.0, 0.0, 0.0]])
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    policy = Categorical(logits)
    np.testing.assert_allclose(policy.log_prob(jnp.array([2, 0])), np.log(p[[0, 1], [2, 0]]))
    np.testing.assert_allclose(policy.entropy(), -(p * np.log(p)).sum(-1))
    np.testing.assert_array_equal(policy.mode(), [2, 0])
    draws = jax.vmap(policy.sample)(jax.random.split(jax.random.key(0), 20_000))
    frequency = np.mean(np.asarray(draws)[..., None] == np.arange(3), 0)
    np.testing.assert_allclose(frequency, p, atol=0.015)


@pytest.mark.slow
def test_several_categoricals_against_all_their_values():
    nvec = (2, 1, 3)
    logits = jnp.array([[0.3, -1.0, 5.0, 2.0, 0.1, 0.7], [0.0, 1.0, -2.0, 0.0, 0.5, 0.0]])
    policy = MultiCategorical(logits, nvec)
    first, second, third = (np.asarray(part) for part in np.split(logits, [2, 3], axis=-1))
    weights = np.exp(first[:, :, None, None] + second[:, None, :, None] + third[:, None, None, :])
    p = weights / weights.sum((1, 2, 3), keepdims=True)  # of every action, for both rows
    actions = np.array([[action, action] for action in np.ndindex(nvec)])

    @jax.jit
    def everything(policy, actions, key):
        draws = jax.vmap(policy.sample)(jax.random.split(key, 20_000))
        return jax.vmap(policy.log_prob)(actions), policy.entropy(), policy.mode(), draws

    log_probs, entropy, mode, draws = map(
        np.asarray, everything(policy, jnp.asarray(actions), jax.random.key(0))
    )
    np.testing.assert_allclose(log_probs, np.log(p).reshape(2, -1).T, rtol=1e-12)
    np.testing.assert_allclose(entropy, -(p * np.log(p)).sum((1, 2, 3)), rtol=1e-12)
    best = [np.unravel_index(row.argmax(), nvec) for row in p]
    np.testing.assert_array_equal(mode, best)
    # The joint frequency: also that the numbers are independent of each other.
    for row in range(2):
        count = np.zeros(nvec)
        np.add.at(count, tuple(draws[:, row].T), 1)
        error = 4.5 * np.sqrt(p[row] * (1 - p[row]) / len(draws))
        assert (np.abs(count / len(draws) - p[row]) < error).all()


def test_gaussian_against_scipy():
    mean, log_std, action = np.array([0.5, -1.0]), np.array([0.2, -0.3]), np.array([0.1, 0.4])

    @jax.jit
    def run(mean, log_std, action, key):
        policy = Gaussian(mean, log_std)
        expected = jax.scipy.stats.norm.logpdf(action, mean, jnp.exp(log_std)).sum()
        draws = jax.vmap(policy.sample)(jax.random.split(key, 20_000))
        each = jax.vmap(policy.log_prob)(draws)
        return policy.log_prob(action), expected, draws, each, policy.entropy()

    found = jax.device_get(run(mean, log_std, action, jax.random.key(0)))
    log_prob, expected, draws, each, entropy = found
    np.testing.assert_allclose(log_prob, expected, rtol=1e-12)
    np.testing.assert_allclose(draws.std(0), np.exp(log_std), rtol=0.02)
    np.testing.assert_allclose(-np.mean(each), entropy, 0.02)


def squashed(mean, log_std, low=-1.0, high=3.0):
    mean, log_std = jnp.asarray(mean), jnp.asarray(log_std)
    center, half = (jnp.full(mean.shape, x / 2, mean.dtype) for x in (low + high, high - low))
    return TanhGaussian(mean, log_std, center, half)


@pytest.mark.slow
def test_a_squashed_gaussian_has_the_density_of_its_actions():
    """Integrated over the box: its mass, its entropy, and what a draw gives on average."""
    means, log_stds = np.array([0.3, -1.5, 0.0]), np.array([-0.5, 0.0, -1.6])
    half_steps = (np.arange(200_000) + 0.5) / 200_000
    actions = -1 + 4 * half_steps
    for mean, log_std in zip(means, log_stds, strict=True):
        policy = squashed([mean], [log_std])
        log_p = np.asarray(jax.jit(jax.vmap(policy.log_prob))(jnp.asarray(actions)[:, None]))
        mass = np.exp(log_p) * 4 / len(actions)
        np.testing.assert_allclose(mass.sum(), 1, atol=1e-6)
        np.testing.assert_allclose(policy.entropy(), -(mass * log_p).sum(), atol=1e-5)
        below = mass[actions < policy.mode()[0]].sum()
        np.testing.assert_allclose(below, 0.5, atol=1e-4)
    policy = squashed(means, log_stds)
    keys = jax.random.split(jax.random.key(0), 20_000)
    found, log_p = jax.jit(jax.vmap(policy.sample_and_log_prob))(keys)
    assert (jnp.abs(found - 1) < 2).all()
    np.testing.assert_allclose(log_p, jax.jit(jax.vmap(policy.log_prob))(found), rtol=1e-8)
    np.testing.assert_allclose(-log_p.mean(), policy.entropy(), rtol=0.02)


@pytest.mark.slow
def test_a_squashed_gaussian_is_finite_at_the_borders_of_its_box(float32):
    """Also far outside of the mean, where tanh rounds to 1; and so are its gradients."""

    def of(mean, action):
        policy = squashed(mean, jnp.zeros(2, jnp.float32))
        drawn, log_p = policy.sample_and_log_prob(jax.random.key(0))
        assert drawn.dtype == jnp.float32
        return policy.log_prob(action) + log_p + policy.entropy()

    for mean, action in (([30.0, -30.0], [3.0, -1.0]), ([0.0, 0.0], [-1.0, 3.0])):
        value, slope = jax.jit(jax.value_and_grad(of))(jnp.array(mean), jnp.array(action))
        assert np.isfinite(value) and np.isfinite(slope).all()


@pytest.mark.parametrize("mean", [0.5, 12.0])
def test_the_density_of_a_draw_is_exact_where_rounding_takes_the_noise(float32, mean):
    """Nothing is left of it in `u - mean`, and tanh(12) is 1 in float32: no action tells u."""
    key, log_std = jax.random.key(0), -20.0

    def of(mean, log_std):
        return squashed(mean, log_std, -1.0, 1.0).sample_and_log_prob(key)[1]

    found, slopes = jax.value_and_grad(of, (0, 1))(jnp.array([mean]), jnp.array([log_std]))
    noise = float(jax.random.normal(key, (1,), jnp.float32)[0])
    slope = 2 * (np.log(2) - mean - np.log1p(np.exp(-2 * mean)))
    expected = -0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi) - slope
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(slopes[0], [2 * np.tanh(mean)], rtol=1e-6)
    np.testing.assert_allclose(slopes[1], [-1], rtol=1e-6)


def test_encoding_of_spaces():
    assert width(spaces.Discrete(4)) == 4
    np.testing.assert_array_equal(encode(spaces.Discrete(4), jnp.int32(2)), [0, 0, 1, 0])
    np.testing.assert_array_equal(encode(spaces.Discrete(2), np.bool_(True)), [0, 1])
    box = spaces.Box(0, 1, (2, 3))
    assert width(box) == 6 and encode(box, jnp.ones((2, 3))).shape == (6,)
    both = spaces.Tuple((spaces.Discrete(2), box))
    np.testing.assert_array_equal(encode(both, (jnp.int32(1), jnp.ones((2, 3)))), [0, *[1] * 7])
    assert is_discrete(spaces.Discrete(2)) and not is_discrete(box)
    two = MultiDiscrete([2, 3])
    assert width(two) == 5 and is_discrete(two)
    np.testing.assert_array_equal(encode(two, jnp.array([1, 0])), [0, 1, 1, 0, 0])


PAIR = spaces.Tuple((spaces.Discrete(2), spaces.Discrete(3)))
NAMED = spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Discrete(3)})


@pytest.mark.parametrize("element", [(1, 2), [1, 2], np.array([1, 2])])
@pytest.mark.parametrize("space", [PAIR, NAMED])
def test_parts_are_encoded_in_their_order(space, element):
    np.testing.assert_array_equal(encode(space, element), [0, 1, 0, 0, 1])
    if space is NAMED:
        named = {"a": element[1], "b": element[0]}
        np.testing.assert_array_equal(encode(space, named), [0, 1, 0, 0, 1])


@pytest.mark.parametrize(
    ("space", "element", "message"),
    [
        (PAIR, (1,), r"`element` \(of parts \[0\]\) must be of parts \[0, 1\]\."),
        (PAIR, (1, 2, 0), r"`element` \(of parts \[0, 1, 2\]\) must be of parts \[0, 1\]\."),
        (PAIR, {"a": 1}, r"`element` \(of parts \['a'\]\) must be of parts \[0, 1\]\."),
        (NAMED, {"a": 1}, r"`element` \(of parts \['a'\]\) must be of parts \['b', 'a'\]\."),
        (NAMED, (1,), r"`element` \(of parts \[0\]\) must be of parts \[0, 1\]\."),
    ],
)
def test_an_element_of_other_parts_is_named(space, element, message):
    with pytest.raises(ValueError, match=message):
        encode(space, element)


def test_spaces_are_alike_by_their_parts():
    discrete, box = spaces.Discrete, spaces.Box(-1.0, 1.0, (2,))
    for kind in (spaces.Tuple, lambda parts: spaces.Dict(dict(zip("abc", parts, strict=False)))):
        one = kind((discrete(4), box))
        assert is_alike(by_content(one), kind((discrete(4), spaces.Box(0.0, 9.0, (2,)))))
        for other in (
            (discrete(2), box),
            (discrete(4), discrete(4)),
            (discrete(4), box, box),
            (box, discrete(4)),
        ):
            assert not is_alike(one, kind(other))
    assert not is_alike(spaces.Tuple((discrete(4),)), discrete(4))


def test_unknown_spaces_are_named():
    with pytest.raises(TypeError, match=r"`space` \(=3\) must be Discrete, MultiDiscrete, Box"):
        width(3)
    with pytest.raises(TypeError, match=r"`action_space` .* must be Discrete, MultiDiscrete or"):
        is_discrete(spaces.Tuple((spaces.Discrete(2),)))


def network(memory="rtu", observation=None, actions=None, **options):
    observation = spaces.Box(-1, 1, (3,)) if observation is None else observation
    actions = spaces.Discrete(2) if actions is None else actions
    sizes = {"encoder_size": 6, "head_size": 6} | options
    spec = zoo.spec(memory, hidden=5)
    return actor_critic(observation, actions, spec, **sizes, key=jax.random.key(0))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"memory": "gru"}, r"`memory` \(='gru'\) must be a memory, as `zoo.get` makes one"),
        ({"memory": zoo.spec("gru", hidden=3)}, r"`memory` \(=Spec\(.*\) must be a memory"),
        ({"head": None}, r"`head` \(=None\) must be a function"),
    ],
)
def test_what_is_no_part_of_a_network_is_named(parts, message, unhooked):
    whole = {"features": lambda inputs: inputs.observation, "head": lambda y: y}
    whole["memory"] = zoo.get("mlp", inputs=3, hidden=3)
    with pytest.raises(TypeError, match=message):
        Recurrent(**(whole | parts))


def test_previous_action_and_reward_are_zero_where_an_episode_begins():
    numbers = network(previous_action=True, previous_reward=True).features.numbers
    observation = jnp.arange(3.0)
    loud = Inputs(observation, jnp.int32(1), jnp.float32(9), jnp.array(True))
    np.testing.assert_array_equal(numbers(loud), [0, 1, 2, 0, 0, 0])
    later = eqx.tree_at(lambda i: i.begin, loud, jnp.array(False))
    np.testing.assert_array_equal(numbers(later), [0, 1, 2, 0, 1, 9])


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("memory", ["rtu", "gru"])
def test_the_forms_of_a_network_agree(memory):
    net, rng = network(memory), np.random.default_rng(0)
    begin = jnp.array([False, False, True, False, False])
    inputs = Inputs(jnp.asarray(rng.normal(size=(5, 3))), jnp.zeros(5, int), jnp.zeros(5), begin)
    late = jnp.array([False, False, False, False, True])

    @eqx.filter_jit
    def forms(net, begin):
        carry = net.init_state(), net.rtrl_init()
        one = lambda state, given: net.step(state, *given)  # noqa: E731
        state, (_, found) = jax.lax.scan(one, carry[0], (inputs, begin))
        _, (_, scanned) = net.scan(carry[0], inputs, begin)
        (end, _), (_, rolled) = net.rtrl_scan(carry, inputs, begin)
        _, (_, stepped) = net.rtrl_step(carry, jax.tree.map(lambda x: x[0], inputs), begin[0])
        return found, scanned, rolled, stepped, state, end

    stepwise, scanned, rolled, first, state, end = forms(net, late)
    for other in (scanned, rolled):
        np.testing.assert_allclose(other, stepwise, rtol=1e-12)
    np.testing.assert_allclose(first, stepwise[0], rtol=1e-12)
    for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(end), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    # Episodes begin where the inputs say so, and where the caller does.
    assert forms(net, jnp.zeros(5, bool))[0][4] != stepwise[4]


@pytest.mark.parametrize("separate", [False, True])
def test_borders_of_another_shape_are_refused(separate, unhooked):
    """They would be broadcast, and begin an episode at every step."""
    net = eqx.filter_eval_shape(lambda: network(separate=separate))
    inputs = Inputs(np.zeros((4, 3)), np.zeros(4, int), np.zeros(4), np.zeros(4, bool))
    one, carry = jax.tree.map(lambda x: x[0], inputs), ((None, None), (None, None))
    for form, given in (
        (net.step, one),
        (net.stepper().step, one),
        (net.rtrl_step, one),
        (net.scan, inputs),
        (net.rtrl_scan, inputs),
    ):
        own = given.begin.shape
        for shape in {(), (1,), (4, 1), (5,)} - {own}:
            message = f"`begin` (shape {shape}) must have the shape of `inputs.begin`, {own}."
            with pytest.raises(ValueError, match=re.escape(message)):
                form(carry, given, np.ones(shape, bool))
        with pytest.raises(TypeError, match=r"`begin` \(='x'\) must be a boolean array"):
            form(carry, given, "x")


@pytest.mark.parametrize("separate", [False, True])
def test_observations_alone_are_no_inputs(separate, unhooked):
    net = eqx.filter_eval_shape(lambda: network(separate=separate))
    xs = np.zeros((4, 3), np.float32)
    carry = ((None, None), (None, None))
    message = r"`inputs` \(=float32\[4, 3\]\) must be agents.networks.Inputs"
    for form in (net.step, net.stepper().step, net.rtrl_step, net.scan, net.rtrl_scan):
        with pytest.raises(TypeError, match=message):
            form(carry, xs)


@pytest.mark.slow
def test_actions_of_several_numbers_have_the_sum_of_the_parts():
    """The head is cut into as many distributions as an action has numbers."""
    net = network(actions=MultiDiscrete((3, 2)))
    one = Inputs(jnp.ones(3), jnp.zeros(2, jnp.int32), jnp.zeros(()), jnp.array(True))
    policy = net.step(net.init_state(), one)[1][0]
    assert policy.logits.shape == (5,)
    action = jnp.array([2, 1])
    parts = Categorical(policy.logits[:3]), Categorical(policy.logits[3:])
    expected = parts[0].log_prob(action[0]) + parts[1].log_prob(action[1])
    np.testing.assert_allclose(policy.log_prob(action), expected, rtol=1e-12)


def test_continuous_actions_have_a_deviation_of_their_own():
    net = network(actions=spaces.Box(-2, 2, (2,)))

    @jax.jit
    def run():
        one = Inputs(jnp.ones(3), jnp.zeros(2), jnp.zeros(()), jnp.array(True))
        return net.step(net.init_state(), one)[1]

    policy, value = run()
    assert isinstance(policy, Gaussian) and value.shape == ()
    np.testing.assert_array_equal(policy.log_std, [0, 0])


def test_heads_without_a_hidden_layer_are_linear():
    head = network(head_size=0).head
    y = jnp.arange(10.0)
    policy, value = head(y)
    np.testing.assert_allclose(policy.logits, head.actor.w @ y, rtol=1e-12)
    np.testing.assert_allclose(value, (head.critic.w @ y)[0], rtol=1e-12)


def test_bad_widths_are_named():
    with pytest.raises(ValueError, match=r"`head_size` \(=-1\) must be a whole number of at least"):
        network(head_size=-1)


def test_normalized_layers_of_one_number_are_refused():
    """Nothing of the input would go through; without the norm, or where there are none, it does."""
    for sizes in ((1, 0, 1), (4, 1, 2)):
        with pytest.raises(ValueError, match=r"_size` \(=1\) must be at least 2: the norm of one"):
            check_normalized(*sizes)
    check_normalized(0, 1, 0)
    spaces_of = spaces.Box(-1, 1, (2,)), spaces.Discrete(2)
    with pytest.raises(ValueError, match=r"`head_size` \(=1\)"):
        sparse_recurrent(
            *spaces_of,
            zoo.spec("mlp", hidden=2),
            outputs=1,
            head=lambda layers: layers,
            encoder_size=0,
            head_size=1,
            key=jax.random.key(0),
        )


class Squashed(eqx.Module):
    """A layer with a function for a leaf, and a scale that should be an array."""

    linear: zoo.parts.Linear
    squash: Callable
    scale: Any

    def __call__(self, x):
        return self.scale * self.squash(self.linear(x))


def behind_squashed(inputs, hidden, *, number=False, key):
    front_key, key = jax.random.split(key)
    linear = zoo.parts.Linear(inputs, 3, key=front_key)
    front = Squashed(linear, jnp.tanh, 0.5 if number else jnp.array(0.5))
    return zoo.Fronted(front, zoo.RTU(3, hidden, key=key), inputs=inputs)


@pytest.mark.slow
def test_a_memory_may_have_functions_for_leaves_but_no_numbers():
    zoo.register("zz_squashed", behind_squashed)

    def made(key, **options):
        memory = zoo.spec("zz_squashed", hidden=4, **options)
        box, actions = spaces.Box(-1, 1, (3,)), spaces.Discrete(2)
        return actor_critic(box, actions, memory, encoder_size=0, head_size=4, key=key)

    key, x = jax.random.key(0), jnp.array([0.3, -2.0, 1.0])
    memory = jax.jit(made)(key).memory  # as an agent makes it
    assert all(map(eqx.is_array, jax.tree.leaves(memory)))
    assert len(jax.tree.leaves(memory)) == 7
    ys = memory.scan(memory.init_state(), x[None])[1]
    np.testing.assert_allclose(memory.step(memory.init_state(), x)[1], ys[0], rtol=1e-12)
    assert abs(ys).max() > 0.01
    with pytest.raises(TypeError, match=r"`memory` \(a Fronted\) has .front.scale \(=0.5\), which"):
        made(key, number=True)
