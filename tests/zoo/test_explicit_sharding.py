"""Memories over explicit axes of a mesh, where how an array is split is a part of its type."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec

import zoo
from tests.zoo import forms

BATCH, TIME = 4, 5


def loss_of(memory):
    """The sum over a batch of everything that both scans give, and its gradients."""
    parameters, rest = eqx.partition(memory, eqx.is_inexact_array)

    def loss(parameters, xs):
        memory = eqx.combine(parameters, rest)
        state = memory.init_state()
        _, ys = jax.vmap(lambda xs: memory.scan(state, xs))(xs)
        carry = state, memory.rtrl_init()
        _, again = jax.vmap(lambda xs: memory.rtrl_scan(carry, xs))(xs)
        return jnp.sum(jnp.sin(ys) + jnp.cos(again))

    return jax.value_and_grad(loss, (0, 1)), parameters


@pytest.mark.slow
@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="JAX 0.8's own loops fail there")
@pytest.mark.parametrize("name", ["rtu", "gru", "elstm", "s6", "shm"])
def test_gradients_over_a_split_batch_are_those_of_one_device(name, eight_devices):
    memory = zoo.get(name, inputs=3, hidden=4)
    differentiated, parameters = loss_of(memory)
    xs = jax.random.normal(jax.random.key(1), (BATCH, TIME, 3))
    mesh = jax.make_mesh(
        (BATCH,),
        ("batch",),
        axis_types=(jax.sharding.AxisType.Explicit,),
        devices=jax.devices()[:BATCH],
    )
    split = jax.sharding.NamedSharding(mesh, PartitionSpec("batch"))
    with jax.set_mesh(mesh):
        if name != "rtu":  # JAX checks the types where it traces
            jax.eval_shape(differentiated, parameters, jax.device_put(xs, split))
            return
        got = jax.jit(differentiated)(parameters, jax.device_put(xs, split))
    assert got[1][1].sharding.spec == PartitionSpec("batch", None, None)
    forms.assert_close(jax.device_get(got), jax.device_get(jax.jit(differentiated)(parameters, xs)))
