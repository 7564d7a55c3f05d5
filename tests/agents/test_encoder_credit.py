"""Exact credit through the encoder: RTRL has the gradient of BPTT for the whole network."""

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
from tests.cases import slow_but

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
@pytest.mark.parametrize("length", slow_but([4], [4, 1]))
def test_rtrl_has_the_gradient_of_bptt_for_the_encoder_too(length):
    whole = leaves(gradient_of(ppo(agents.BPTT())))
    found = leaves(gradient_of(ppo(agents.RTRL(length), "exact")))
    for got, want in zip(found, whole, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())
    short = leaves(gradient_of(ppo(agents.RTRL(length))))
    apart = [np.abs(a - b).max() / np.abs(b).max() for a, b in zip(short, whole, strict=True)]
    assert max(apart) > 1e-3, "nothing is lost without it"


def test_it_is_refused_where_it_means_nothing():
    with pytest.raises(ValueError, match=r"`encoder_credit` \(='exact'\) needs agents.RTRL"):
        ppo(agents.BPTT(), "exact")
    with pytest.raises(ValueError, match=r"needs a memory of one cell, which `memory`"):
        ppo(agents.RTRL(4), "exact", memory="rwkv")
