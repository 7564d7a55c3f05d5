"""Every form of every memory, and PPO, are lowered for NVIDIA GPUs on a machine that has none."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import agents
import zoo
from tests.cases import DISTINCT, RULED, for_each
from tests.zoo import forms
from zoo.proofs.forms import states_forms_itself


def lowered_for_cuda(function, *arguments):
    """The program's text: `NotImplementedError` where an operation is not to be had there."""
    program = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cuda",)).as_text()
    assert "lapack" not in program, "a library of the CPU"
    return program


@for_each(DISTINCT, quick=["rtu"])
def test_the_four_forms_and_their_gradients(case, float32):
    """Over a batch that is split by `jax.shard_map`, parameters the same everywhere: where it is
    traced, JAX checks what may differ between devices (`test_shard_map.py` has the numbers). Also
    where JAX is told to promote no dtype by itself. Two forms are the kind's, but for cells that
    state a rule of their own."""

    @eqx.filter_eval_shape
    @jax.numpy_dtype_promotion("strict")
    def shapes():
        memory = case.build(forms.INPUTS, forms.HIDDEN, key=jax.random.key(0))
        return memory, (memory.init_state(), memory.rtrl_init())

    # Any numbers do, where a program is lowered and not run.
    memory, carry = jax.tree.map(
        lambda x: np.zeros(x.shape, x.dtype) if isinstance(x, jax.ShapeDtypeStruct) else x, shapes
    )
    parameters, rest = eqx.partition(memory, eqx.is_inexact_array_like)

    def loss(parameters, state, xs):
        memory, begin = eqx.combine(parameters, rest), jnp.zeros(len(xs), bool)
        with jax.numpy_dtype_promotion("strict"):
            out = [
                memory.step(state, xs[0], begin[0]),
                memory.scan(state, xs, begin),
                memory.scan(memory.init_state(), xs, begin),
            ]
            if case in RULED or states_forms_itself(memory):
                out += [
                    memory.rtrl_step((state, carry[1]), xs[0], begin[0]),
                    memory.rtrl_scan((state, carry[1]), xs, begin),
                ]
        return forms.of_state(out) + 0.0

    def local(parameters, states, batch):
        loss_of_all = lambda p: jnp.sum(jax.vmap(loss, (None, 0, 0))(p, states, batch))  # noqa: E731
        return jax.grad(loss_of_all)(parameters)

    mesh = jax.sharding.AbstractMesh((2,), ("batch",))
    same, parted = jax.sharding.PartitionSpec(), jax.sharding.PartitionSpec("batch")
    on_all = jax.shard_map(local, mesh=mesh, in_specs=(same, parted, parted), out_specs=same)
    states = jax.tree.map(lambda h: np.stack([h, h]), carry[0])
    program = lowered_for_cuda(on_all, parameters, states, np.ones((2, 4, forms.INPUTS), "f4"))
    assert "f64" not in program


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["rtu", "gru", "deltanet", "rwkv", "tcn", "transformer"])
def test_it_is_exported_for_any_number_of_steps(name, platform, float32, unhooked):
    memory = zoo.get(name, inputs=3, hidden=4, key=jax.random.key(0))
    scanned = jax.jit(lambda xs, begin: memory.scan(memory.init_state(), xs, begin)[1])
    (time,) = jax.export.symbolic_shape("time")
    given = jax.ShapeDtypeStruct((time, 3), jnp.float32), jax.ShapeDtypeStruct((time,), bool)
    exported = jax.export.export(scanned, platforms=[platform])(*given)
    assert [str(x) for x in exported.out_avals] == [f"float32[time,{memory.outputs}]"]
    if platform == "cpu":
        given = jnp.ones((50, 3)), jnp.arange(50) == 20
        np.testing.assert_allclose(exported.call(*given), scanned(*given), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("gradient", [agents.RTRL(4), agents.BPTT()], ids=["rtrl", "bptt"])
def test_ppo(gradient, float32):
    ppo = agents.PPO(
        env="RepeatPreviousEasy",
        memory=zoo.spec("rtu", hidden=4),
        gradient=gradient,
        num_envs=4,
        rollout_length=8,
        minibatches=2,
    )
    state = jax.eval_shape(ppo.init, key=jax.random.key(0))
    lowered_for_cuda(lambda: ppo.init(key=jax.random.key(0)))
    lowered_for_cuda(ppo.iterate, state)
