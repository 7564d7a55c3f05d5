"""Runs over several devices, on those of the tests' CPU."""

import dataclasses
import functools
import importlib
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import agents
import zoo
from agents.parallel import ENVIRONMENTS, on_each_device
from agents.running.devices import placement
from agents.running.messages import check_order, collectives, unordered
from agents.running.programs import Programs, init_seeds, traced_step

pytestmark = pytest.mark.usefixtures("eight_devices")

PPO = agents.PPO(
    env="t_maze",
    env_options={"length": 1, "max_steps_in_episode": 4},
    memory=zoo.spec("gru", hidden=3),
    gradient=agents.TBPTT(4),
    num_envs=16,
    rollout_length=8,
    epochs=2,
    minibatches=2,
    encoder_size=4,
    head_size=4,
    learning_rate=3e-3,
)


def run(agent, iterations, **options):
    """The state and the metrics of so many iterations, and the programs."""
    programs = Programs(agent, seed=0, evaluation_episodes=0, **options)
    state, reports = programs.init(), []
    for _ in range(iterations):
        state, report = programs.step(state)
        reports.append(jax.device_get(report.scalars()))
    return state, jax.tree.map(lambda *x: np.stack(x), *reports), programs


@pytest.mark.slow
def test_what_a_seed_learns_is_bitwise_the_same_over_any_number_of_devices(same_state):
    """Two on each of four here; one on each of two where a run goes on over other devices."""
    one, four = (run(PPO, 3, seeds=8, devices=n) for n in (1, 4))
    assert len(four[0].learner.optimizer[1][0].count.sharding.device_set) == 4
    same_state(one[0], four[0])
    jax.tree.map(np.testing.assert_array_equal, one[1], four[1])
    assert collectives(four[2].step) == []


@pytest.mark.slow  # three programs, two of them of eight devices
def test_environments_that_are_split_learn_the_same_and_move_gradients_only():
    _, alone, _ = run(PPO, 10, seeds=1)
    state, split, programs = run(PPO, 10, seeds=1, devices=8)
    assert unordered(programs.step) == []
    assert split.keys() == alone.keys()
    for name, values in alone.items():
        np.testing.assert_allclose(split[name], values, rtol=1e-5, atol=1e-12, err_msg=name)
    for leaf in jax.tree.leaves(state.actors):
        assert leaf.sharding.shard_shape(leaf.shape)[1] == 2
    assert all(leaf.sharding.is_fully_replicated for leaf in jax.tree.leaves(state.learner))

    parameters = eqx.filter(state.learner.network, eqx.is_inexact_array)
    size = sum(x.nbytes for x in jax.tree.leaves(parameters))
    more = Programs(
        dataclasses.replace(PPO, num_envs=32), seed=0, seeds=1, evaluation_episodes=0, devices=8
    )
    for found in (collectives(p.step) for p in (programs, more)):
        assert {x.kind for x in found} == {"all-reduce"}
        # Besides, of each minibatch: the advantages' mean, their variance and its own mean, and the
        # loss's nine metrics, two of which are made of others. Of a rollout: how many episodes
        # ended, and in float32 the sums of their returns and lengths.
        scalars = 11
        each = size + 8 * scalars
        total = sum(x.times * x.size for x in found)
        assert total - PPO.epochs * PPO.minibatches * each == 8 + 4 + 4


@pytest.mark.slow
def test_a_gpu_runs_the_kernel_for_its_own_environments(float32):
    """XLA cannot split a kernel: every device would gather all environments and compute them."""
    agent = dataclasses.replace(
        PPO,
        memory=zoo.spec("lru", hidden=5),
        gradient=agents.RTRL(segment=8, refresh="epoch"),
        num_envs=14,
        rollout_length=32,
        minibatches=1,
        normalize_reward=True,
    )
    place = placement(2, agent, seeds=1)
    with place.splitting():
        state = jax.eval_shape(init_seeds(agent, 0, 1, place.over_seeds))
        lowered = traced_step(agent, place, state).lower(lowering_platforms=("cuda",))
    program = lowered.as_text()
    kernels = [line for line in program.splitlines() if "gpu.triton" in line]
    # Of 14 environments 7, and of their 56 segments of 8 steps 28.
    shapes = [
        set(map(int, re.findall(r"(\d+)(?=x)", line.rsplit(" : ", 1)[1]))) for line in kernels
    ]
    assert {1, 5, 7, 8, 28, 32} == set().union(*shapes)
    assert all(shape & {7, 28} for shape in shapes)


@pytest.mark.parametrize("envs, seen", [(8, [2, 2]), (6, [6, 6])])
def test_each_device_runs_what_is_its_own_where_that_can_be_divided(envs, seen):
    sizes = []

    def double(_, x):
        sizes.append(x.shape[1])
        return 2 * x

    def twice(_, x):
        return on_each_device(double, 1, 1)((), double(_, x))

    mesh = jax.sharding.Mesh(jax.devices()[:4], (ENVIRONMENTS,))
    x = jnp.arange(3.0 * envs).reshape(3, envs)
    with jax.set_mesh(mesh):
        found = jax.jit(lambda x: on_each_device(twice, 1, 1)((), x))(x)
    np.testing.assert_array_equal(found, 4 * x)
    assert sizes == seen


@pytest.mark.parametrize("waits", [True, False])
def test_a_loop_of_sums_that_the_next_sum_does_not_wait_for_is_found(waits):
    mesh = jax.make_mesh((4,), ("device",), devices=jax.devices()[:4])
    split = NamedSharding(mesh, PartitionSpec("device"))

    @jax.jit
    def two(x):
        def loop(start, size):
            return jax.lax.fori_loop(0, 3, lambda _, s: jnp.sin(x[:, :size] * s).sum(), start)

        first = loop(1.0, 2)
        return first + loop(first if waits else 1.0, 1)

    program = two.lower(jax.device_put(jnp.ones((8, 2)), split)).compile()
    assert len(collectives(program)) == 2
    if waits:
        check_order(program)
        return
    with pytest.raises(ValueError, match=r"while[.\d]* does not wait for while[.\d]*, and they"):
        check_order(program)


@pytest.mark.parametrize(
    "agent, options, message",
    [
        (PPO, {"devices": 9}, r"`devices` \(=9\) must be at most 8: so many cpu devices"),
        (PPO, {"devices": 0}, r"`devices` \(=0\) must be a whole number of at least 1"),
        (
            PPO,
            {"devices": 3, "seeds": 2},
            r"`devices` \(=3\) must divide `seeds` \(=2\) or .* environments \(=16\)",
        ),
        (
            agents.Tabular(env="three_state"),
            {"devices": "all"},
            r"`devices` \(=8\) must divide `seeds` \(=1\) or .* environments \(=1\)",
        ),
        (
            agents.IdealPolicyIteration(env="recall_four", env_options={"external_memory": "K2"}),
            {"devices": 2},
            "IdealPolicyIteration has no environments side by side, which could be split",
        ),
        (
            dataclasses.replace(PPO, env="gymnasium/CartPole-v1", env_options={}),
            {"devices": 2, "seeds": 2},
            r"`devices` \(=2\) splits what JAX runs; gymnasium/CartPole-v1 runs in Python",
        ),
    ],
)
def test_what_cannot_be_split_is_refused(agent, options, message):
    with pytest.raises(ValueError, match=message):
        run(agent, 0, **{"seeds": 1, **options})


@pytest.mark.slow
def test_a_run_goes_on_over_other_devices(tmp_path, same_state, monkeypatch):
    # Runs over as many devices share their programs.
    module = importlib.import_module("agents.running.train")
    monkeypatch.setattr(module, "Programs", functools.lru_cache(maxsize=2)(module.Programs))
    options = {"seeds": 2, "evaluate_every": 1, "evaluation_episodes": 4, "progress": False}
    agent = dataclasses.replace(PPO, num_envs=4)
    train = lambda out, **more: agents.train(agent, out=out, **options, **more)  # noqa: E731
    steps = agent.steps_per_iteration
    whole = train(tmp_path / "whole", steps=2 * steps, devices=1)
    train(tmp_path / "split", steps=steps, devices=2)
    resumed = train(tmp_path / "split", steps=2 * steps, devices=1, resume=True)
    same_state(whole.state, resumed.state)
    scalars = [(result.folder / "scalars.csv").read_bytes() for result in (whole, resumed)]
    assert scalars[0] == scalars[1]
    back = train(tmp_path / "split", steps=3 * steps, devices=2, resume=True)
    assert len(back.state.iteration.sharding.device_set) == 2
