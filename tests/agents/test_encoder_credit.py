"""Exact credit through the encoder: RTRL has the gradient of BPTT for the whole network."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import agents
import zoo
from agents.learning.credit import along, outputs
from agents.learning.segments import to_segments
from agents.networks import Inputs

TIME, ENVS = 16, 4


def ppo(gradient, credit="segment", memory="rtu", **options):
    return agents.PPO(
        env="MemoryChain-bsuite",
        memory=zoo.spec(memory, hidden=5),
        gradient=gradient,
        encoder_size=6,
        head_size=6,
        encoder_credit=credit,
        num_envs=ENVS,
        rollout_length=TIME,
        minibatches=2,
        **options,
    )


@functools.cache
def gradient_of(agent):
    """The gradient of a fixed loss over a rollout that starts with episodes' beginnings."""
    draw = np.random.default_rng(0)
    begin = draw.random((TIME, ENVS)) < 0.15
    begin[0] = True
    inputs = Inputs(
        jnp.asarray(draw.normal(size=(TIME, ENVS, 3))),
        jnp.asarray(draw.integers(2, size=(TIME, ENVS))),
        jnp.asarray(draw.normal(size=(TIME, ENVS))),
        jnp.asarray(begin),
    )
    segment = agent.gradient.segment_length(TIME)
    pieces, weights = to_segments((inputs, jnp.asarray(draw.normal(size=(TIME, ENVS)))), segment)

    @eqx.filter_grad
    def gradient(network):
        fresh = agent.gradient.begin(network)
        start = jax.tree.map(lambda x: jnp.broadcast_to(x, (ENVS, *x.shape)), fresh)
        _, starts = jax.lax.stop_gradient(along(agent.gradient, network, start, inputs))
        policy, value = outputs(agent.gradient, network, starts, pieces)
        return jnp.sum(weights * (value + policy.logits.sum(-1)) ** 2)

    return jax.jit(lambda key: gradient(agent.network(key=key)))(jax.random.key(1))


def leaves(gradient):
    """Leaf by leaf, by shape and then by norm: the encoder stands in another place of the tree."""
    arrays = [np.asarray(x) for x in jax.tree.leaves(eqx.filter(gradient, eqx.is_inexact_array))]
    return sorted(arrays, key=lambda x: (x.shape, np.abs(x).sum()))


@pytest.mark.slow
@pytest.mark.parametrize("length", [4, 1])
def test_rtrl_has_the_gradient_of_bptt_for_the_encoder_too(length):
    whole = leaves(gradient_of(ppo(agents.BPTT())))
    found = leaves(gradient_of(ppo(agents.RTRL(length), "exact")))
    for got, want in zip(found, whole, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())
    short = leaves(gradient_of(ppo(agents.RTRL(length))))
    apart = [np.abs(a - b).max() / np.abs(b).max() for a, b in zip(short, whole, strict=True)]
    assert max(apart) > 1e-3, "nothing is lost without it"


def streaming(credit, memory="rtu"):
    return agents.StreamingTD(
        env="MemoryChain-bsuite",
        memory=zoo.spec(memory, hidden=5),
        encoder_size=6,
        encoder_credit=credit,
        head_size=6,
    )


@pytest.mark.slow
def test_at_every_step_too():
    """The gradients of all steps' losses, summed, are those of the loss over the episodes."""
    draw = np.random.default_rng(0)
    inputs = Inputs(
        jnp.asarray(draw.normal(size=(TIME, 3))),
        jnp.asarray(draw.integers(2, size=TIME)),
        jnp.asarray(draw.normal(size=TIME)),
        jnp.arange(TIME) % 9 == 0,
    )

    def online(credit):
        agent = streaming(credit)
        network = agent.network(key=jax.random.key(1))

        def loss(network, carry, inputs):
            carry, value = agent.gradient.online_step(network, carry, inputs)
            return value**2, carry

        def step(carry, inputs):
            slope, carry = eqx.filter_grad(loss, has_aux=True)(network, carry, inputs)
            return carry, slope

        start = agent.gradient.online_begin(network, jax.tree.map(lambda x: x[0], inputs))
        return jax.tree.map(lambda x: x.sum(0), jax.lax.scan(step, start, inputs)[1])

    def over_episodes():
        network = streaming("segment").network(key=jax.random.key(1))
        loss = lambda n: jnp.sum(n.scan(n.init_state(), inputs)[1] ** 2)  # noqa: E731
        return eqx.filter_grad(loss)(network)

    exact, short, whole = jax.jit(lambda: (online("exact"), online("segment"), over_episodes()))()
    for got, want in zip(leaves(exact), leaves(whole), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())
    assert not np.allclose(short.features.encoder.linear.w, whole.features.encoder.linear.w, 1e-2)


def fronted(inputs, hidden, *, key):
    return zoo.Fronted(jnp.tanh, zoo.RTU(inputs, hidden, key=key), inputs=inputs)


def test_it_is_refused_where_it_means_nothing():
    with pytest.raises(ValueError, match=r"`encoder_credit` \(='exact'\) needs agents.RTRL"):
        ppo(agents.BPTT(), "exact")
    with pytest.raises(
        ValueError, match=r"needs a memory of one cell without a f.*, which `memory`"
    ):
        streaming("exact", "transformer")
    zoo.register("zz_fronted", fronted)
    with pytest.raises(ValueError, match=r"of its own, which `memory` \(=Spec\(name='zz_fronted'"):
        ppo(agents.RTRL(8), "exact", "zz_fronted")
    with pytest.raises(
        ValueError, match=r"needs a memory of one cell without a f.*, which `memory`"
    ):
        ppo(agents.RTRL(4), "exact", memory="rwkv")
