"""A trained policy acts outside of the package as it did inside."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import agents
import zoo
from agents.training import load_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    ppo = agents.PPO(
        env="CartPole-v1",
        memory=zoo.spec("rtu", hidden=4),
        gradient=agents.RTRL(4),
        num_envs=2,
        rollout_length=16,
        epochs=1,
        minibatches=2,
        encoder_size=4,
        head_size=4,
        normalize_observation=True,
        previous_action=True,
        previous_reward=True,
    )
    folder = tmp_path_factory.mktemp("runs") / "cartpole"
    agents.train(
        ppo, steps=64, seeds=2, out=folder, evaluate_every=0, evaluation_episodes=2, progress=False
    )
    return ppo, folder


def test_acts_as_in_training(run):
    ppo, folder = run
    _, state, _ = load_run(folder, agents.PPO.from_dict)
    policy = agents.load_policy(folder, seed=1)
    env, params = ppo.environment
    actor = agents.rollout.Actor(env, params, policy.observation_statistics)
    runner = actor.reset(policy.network, 1, key=jax.random.key(3))
    act = eqx.filter_jit(policy.act)
    carried = policy.init_state()
    step = jax.jit(lambda r, k: actor.step(policy.network, r, k, greedy=True))
    for t in range(40):
        carried, action = act(carried, runner.observation[0], runner.begin[0], runner.reward[0])
        runner, taken = step(runner, jax.random.key(t))
        assert int(action) == int(taken.action[0])
    assert bool(jnp.any(taken.episode_length < 40)), "no episode ended on the way"
    np.testing.assert_array_equal(policy.network.encoder.w, state.network.encoder.w[1])


def test_a_key_draws_actions(run):
    policy = agents.load_policy(run[1])
    draws = jax.vmap(lambda key: policy.act(policy.init_state(), jnp.zeros(4), True, key=key)[1])(
        jax.random.split(jax.random.key(0), 200)
    )
    assert 0.2 < float(jnp.mean(draws)) < 0.8


def test_unknown_seed_is_named(run):
    with pytest.raises(ValueError, match=r"`seed` \(=2\) must be in 0 … 1: the run has 2 seeds"):
        agents.load_policy(run[1], seed=2)
