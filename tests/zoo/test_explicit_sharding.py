"""Memories over explicit axes of a mesh, where how an array is split is a part of its type."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import scan
import zoo
from tests.zoo import forms

BATCH, TIME = 4, 40  # steps enough for chunks
BEGIN = jax.device_put(np.arange(TIME) == 2)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("mesh"),
    pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="JAX 0.8's own loops fail there"),
]


@pytest.fixture
def mesh(eight_devices):
    """A mesh in use, of as many devices as there are members of a batch."""
    explicit = (jax.sharding.AxisType.Explicit,)
    devices = jax.devices()[:BATCH]
    with jax.set_mesh(jax.make_mesh((BATCH,), ("batch",), explicit, devices=devices)):
        yield


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


@pytest.mark.parametrize("name", ["rtu", "gru", "elstm", "s6", "shm", "deltanet"])
def test_gradients_over_a_split_batch_are_those_of_one_device(name):
    memory = zoo.get(name, inputs=3, hidden=4)
    differentiated, parameters = loss_of(memory)
    xs = jax.random.normal(jax.random.key(1), (BATCH, TIME, 3))
    split = jax.device_put(xs, PartitionSpec("batch"))
    if name != "rtu":  # JAX checks the types where it traces
        jax.eval_shape(differentiated, parameters, split)
        return
    got = jax.jit(differentiated)(parameters, split)
    assert got[1][1].sharding.spec == PartitionSpec("batch", None, None)
    forms.assert_close(jax.device_get(got), jax.device_get(jax.jit(differentiated)(parameters, xs)))


@pytest.mark.parametrize("method", ["auto", "sequential", "associative"])
@pytest.mark.parametrize("varies", [False, True])
def test_a_batch_behind_time_may_be_split(method, varies):
    solve = lambda a, b: scan.linear(a, b, None, BEGIN, method=method)  # noqa: E731
    differentiated = jax.grad(lambda a, b: jnp.sum(solve(a, b) ** 2), (0, 1))
    b = jax.device_put(jnp.ones((TIME, BATCH, 3)), PartitionSpec(None, "batch"))
    a = b if varies else jnp.ones(3)
    of_a, of_b = jax.eval_shape(differentiated, a, b)
    assert of_a.shape == a.shape and of_b.sharding.spec == PartitionSpec(None, "batch", None)


def _update(weight, h, x):
    return jnp.tanh(weight[None] * h + x)


def _coupled(weight, h, x):
    return jnp.tanh(weight[None] * h[0] + h[1] * x), h[1] / 2 + jnp.sin(h[0])


def _newton(weight, h, xs):
    return scan.newton(_update, weight, h, xs, BEGIN, initial=jnp.zeros_like(h))[0]


@pytest.mark.parametrize(
    "solve",
    [
        lambda weight, h, xs: scan.blocks(xs[..., None] * weight[None, None, None], xs, h, BEGIN),
        lambda weight, h, xs: scan.nonlinear(_coupled, weight, (h, h), xs),
        _newton,
    ],
    ids=["blocks", "nonlinear", "newton"],
)
def test_solvers_of_coupled_units_over_a_split_batch(solve):
    h, weight = jnp.full((BATCH, 3), 0.1), jnp.array([0.5, 0.4, 0.3])
    xs = jax.random.normal(jax.random.key(1), (TIME, BATCH, 3))

    def loss(weight, h, xs):
        return sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(solve(weight, h, xs)))

    differentiated = jax.jit(jax.value_and_grad(loss, (0, 1, 2)))
    split = (
        jax.device_put(h, PartitionSpec("batch")),
        jax.device_put(xs, PartitionSpec(None, "batch")),
    )
    got = differentiated(weight, *split)
    assert got[1][2].sharding.spec == PartitionSpec(None, "batch", None)
    forms.assert_close(jax.device_get(got), jax.device_get(differentiated(weight, h, xs)))


def test_a_proof_runs_within_a_mesh():
    """There a new array may lie on many devices; a cell is proven as it is outside."""
    report = zoo.prove(zoo.RTU, show=False, check=False)
    assert report.passed, report
    assert len(jnp.zeros(()).devices()) == BATCH
