"""Convolutions in front of a memory: sizes, values by a plain loop, and credit through them."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces

import agents
import zoo
from agents import envs
from agents.networks import Convolutions, Inputs, actor_critic, q_network, sparse_recurrent
from agents.networks.encoders import Behind, front
from agents.networks.layers import Encoder
from agents.networks.spaces import encode
from agents.running.programs import init_seeds

KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("shape", "sizes", "outputs"),
    [
        ((84, 84, 4), [(32, 8, 8, 4), (64, 4, 4, 2), (64, 3, 3, 1)], 64 * 7 * 7),
        ((36, 44, 3), [(32, 8, 8, 4), (64, 4, 4, 2), (64, 3, 3, 1)], 64 * 1 * 2),
        ((3, 16, 20), [(32, 4, 4, 2), (64, 3, 3, 1)], 64 * 5 * 7),
        ((10, 10, 4), [(16, 3, 3, 1)], 16 * 8 * 8),
        ((4, 17, 15), [(16, 3, 3, 1)], 16 * 15 * 13),
        ((5, 2, 1), [(16, 3, 2, 1)], 16 * 3 * 1),
    ],
)
def test_sizes_follow_the_picture(shape, sizes, outputs):
    net = eqx.filter_eval_shape(Convolutions, spaces.Box(0, 1, shape), key=jax.random.key(0))
    found = [(layer.w.shape[0], *layer.w.shape[2:], layer.stride) for layer in net.layers]
    assert found == sizes and net.outputs == outputs
    assert net.layers[0].w.shape[1] == min(shape[0], shape[2])
    numbers = jax.ShapeDtypeStruct((np.prod(shape),), float)
    assert eqx.filter_eval_shape(net, numbers).shape == (outputs,)


def _wrapped(wrap):
    env, params = envs.make("hallway_cookie")
    return wrap(env), params


@pytest.mark.slow
@pytest.mark.parametrize(
    "env",
    [
        "Breakout-MinAtar",
        "Pong-misc",
        _wrapped(lambda env: envs.wrappers.Noise(env, 0.1)),
        _wrapped(envs.wrappers.NormalizeObservation),
    ],
)
def test_training_begins_on_pictures_whose_bounds_are_made_by_jax(env):
    """Under `jit`, where NumPy's functions of JAX's arrays are traced."""
    sizes = {"num_envs": 2, "rollout_length": 8, "minibatches": 1}
    agent = agents.PPO(env=env, memory=zoo.spec("rtu", hidden=2), **sizes)
    jax.eval_shape(init_seeds(agent, 0, 1))


LARGEST = np.finfo(np.float32).max


@pytest.mark.parametrize(
    ("low", "high", "scale"),
    [
        (0, 255, 255.0),
        (0, 1, 1.0),
        (-10, 10, 1.0),  # normalized already
        (-np.inf, np.inf, 1.0),
        (-LARGEST, LARGEST, 1.0),  # how others write that there is no bound
        (0, LARGEST, 1.0),
    ],
)
def test_pictures_are_divided_by_the_bound_of_pixels(low, high, scale):
    space = spaces.Box(low, high, (5, 5, 2))
    net = eqx.filter_eval_shape(Convolutions, space, key=jax.random.key(0))
    assert net.scale == scale


@pytest.mark.parametrize(
    ("kind", "convolutions"),
    [
        (agents.PPO, lambda agent, key: agent.network(key=key)),
        (agents.StreamingAC, lambda agent, key: agent.networks(key=key)[1]),
    ],
)
def test_pictures_that_are_normalized_are_not_scaled_once_more(kind, convolutions):
    env, params = envs.make("hallway_cookie")
    env._observations = spaces.Box(0, 9, env.observation_space(params).shape)
    for normalizes, scale in ((True, 1.0), (False, 9.0)):
        agent = kind(
            env=(env, params),
            memory=zoo.spec("rtu", hidden=2),
            encoder_size=4,
            normalize_observation=normalizes,
        )
        net = eqx.filter_eval_shape(partial(convolutions, agent), jax.random.key(0))
        assert net.features.encoder.convolutions[0].scale == scale


@pytest.mark.parametrize("shape", [(5, 6, 2), (2, 5, 6)])
def test_values_are_those_of_the_plain_loop(shape):
    net = Convolutions(spaces.Box(0, 255, shape), key=jax.random.key(0))
    draw = np.random.default_rng(0)
    picture = draw.uniform(0, 255, size=shape)
    bias = jnp.asarray(draw.normal(size=16))
    net = eqx.tree_at(lambda n: n.layers[0].b, net, bias)
    found = eqx.filter_jit(net)(jnp.asarray(picture.ravel()))
    planes = picture / 255 if shape[0] == 2 else np.moveaxis(picture, 2, 0) / 255
    w, expected = np.asarray(net.layers[0].w), np.zeros((16, 3, 4))
    for channel, row, column in np.ndindex(expected.shape):
        window = planes[:, row : row + 3, column : column + 3]
        expected[channel, row, column] = max(0, np.sum(w[channel] * window) + bias[channel])
    np.testing.assert_allclose(found, expected.ravel(), rtol=1e-12)
    assert (expected > 0).any() and (expected == 0).any()


@pytest.mark.slow
def test_convolutions_are_sparse_and_normalized_where_layers_are():
    sizes = {"encoder_size": 6, "head_size": 6}
    space, actions = spaces.Box(0, 1, (4, 5, 2)), spaces.Discrete(2)
    spec = zoo.spec("rtu", hidden=2)

    @eqx.filter_jit
    def convolutions(picture):
        kinds = {
            "q": q_network(
                space,
                actions,
                spec,
                **sizes,
                head_layers=1,
                layer_norm=True,
                dueling=False,
                key=KEY,
            ),
            "sparse": sparse_recurrent(
                space, actions, spec, **sizes, outputs=2, head=lambda layers: layers, key=KEY
            ),
            "plain": actor_critic(space, actions, spec, **sizes, key=KEY),
        }
        nets = {name: net.features.encoder.convolutions[0] for name, net in kinds.items()}
        return {name: (net.layers[0].w, net(picture)) for name, net in nets.items()}

    found = convolutions(jax.random.uniform(KEY, (40,)))
    zeros = {name: float(jnp.mean(w == 0)) for name, (w, _) in found.items()}
    assert zeros == {"q": 0, "sparse": pytest.approx(16 / 18), "plain": 0}
    for name, (_, out) in found.items():
        # What a leaky ReLU was taken of, which is one to one.
        before = jnp.where(out < 0, out / 0.01, out)
        normal = abs(jnp.mean(before)) < 1e-3 and abs(jnp.std(before) - 1) < 1e-3
        assert normal == (name != "plain") and (out.min() < 0) == (name != "plain")


def test_every_picture_of_an_observation_is_looked_at_and_other_numbers_go_by():
    space = spaces.Dict(
        {
            "speed": spaces.Box(-1, 1, (2,)),
            "eyes": spaces.Tuple((spaces.Box(0, 255, (4, 5, 1)), spaces.Box(0, 9, (2, 3, 3)))),
            "gear": spaces.Discrete(3),
        }
    )
    widths = []
    net = front(space, 2 + 20 + 18 + 3 + 4, lambda n: widths.append(n) or (lambda x: x), key=KEY)
    left, right = net.convolutions
    assert net.places == (2, 22) and (left.scale, right.scale) == (255.0, 9.0)
    draw = np.random.default_rng(0)
    seen = {
        "speed": draw.normal(size=2),
        "eyes": (draw.uniform(0, 255, size=(4, 5, 1)), draw.uniform(0, 9, size=(2, 3, 3))),
        "gear": 1,
    }
    action = draw.normal(size=4)
    found = net(jnp.concatenate([encode(space, seen), jnp.asarray(action)]))
    parts = [left(jnp.ravel(seen["eyes"][0])), right(jnp.ravel(seen["eyes"][1]))]
    expected = np.concatenate([*parts, seen["speed"], [0, 1, 0], action])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert widths == [len(found)]


@pytest.mark.parametrize(("env", "is_picture"), [("hallway_cookie", True), ("CartPole-v1", False)])
def test_the_observation_space_chooses(env, is_picture):
    ppo = agents.PPO(env=env, memory=zoo.spec("rtu", hidden=4), previous_action=True)
    encoder = eqx.filter_eval_shape(lambda key: ppo.network(key=key), jax.random.key(0))
    encoder = encoder.features.encoder
    assert isinstance(encoder, Behind if is_picture else Encoder)
    if is_picture:
        flat = encoder.convolutions[0].outputs + 4  # and the previous action
        assert encoder.encoder.linear.w.shape == (64, flat)


@pytest.mark.slow
def test_exact_credit_goes_through_convolutions_too():
    time, size = 6, 5
    space = spaces.Box(0, 1, (4, 4, 2))

    def network(credit):
        return actor_critic(
            space,
            spaces.Discrete(2),
            zoo.spec("rtu", hidden=3),
            encoder_size=size,
            encoder_credit=credit,
            head_size=0,
            key=jax.random.key(1),
        )

    draw = np.random.default_rng(0)
    begin = jnp.asarray(np.arange(time) == 2)
    inputs = Inputs(
        jnp.asarray(draw.uniform(size=(time, *space.shape))),
        jnp.zeros(time, int),
        jnp.zeros(time),
        begin,
    )
    weight = jnp.asarray(draw.normal(size=time))

    @eqx.filter_jit
    @eqx.filter_grad
    def whole(net):
        _, (policy, value) = net.scan(net.init_state(), inputs)
        return jnp.sum(weight[4:] * (value + policy.logits[:, 0])[4:] ** 2)

    @eqx.filter_jit
    @eqx.filter_grad
    def in_segments(net):
        carry = net.init_state(), net.rtrl_init()
        first, second = (jax.tree.map(lambda x, i=i: x[i : i + 4], inputs) for i in (0, 4))
        carry, _ = net.rtrl_scan(carry, first)
        _, (policy, value) = net.rtrl_scan(jax.lax.stop_gradient(carry), second)
        return jnp.sum(weight[4:] * (value + policy.logits[:, 0]) ** 2)

    want = whole(network("segment")).features.encoder
    found = in_segments(network("exact")).memory.front
    short = in_segments(network("segment")).features.encoder
    apart = 0.0
    for a, b, c in zip(*map(jax.tree.leaves, (want, found, short)), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9 * float(jnp.abs(a).max()))
        apart = max(apart, float(jnp.abs(c - a).max() / jnp.abs(a).max()))
    assert apart > 1e-3, "nothing is lost without it"
