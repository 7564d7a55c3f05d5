"""Actions of several discrete numbers, from the network through training to a loaded policy."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import agents
import zoo
from agents.distributions import Categorical
from agents.ppo import PPO
from agents.rollout import Actor

BOARD = {"board_size": 3, "ship_sizes": (2,)}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    ppo = agents.PPO(
        env="Battleship",
        env_options=BOARD,
        memory=zoo.spec("rtu", hidden=4),
        gradient=agents.RTRL(4),
        num_envs=4,
        rollout_length=16,
        epochs=2,
        minibatches=2,
        encoder_size=4,
        head_size=4,
        previous_action=True,
    )
    folder = tmp_path_factory.mktemp("runs") / "battleship"
    result = agents.train(ppo, steps=256, out=folder, evaluation_episodes=3, progress=False)
    return ppo, folder, result


def test_ppo_trains(run):
    ppo, _, result = run
    assert result.iterations == 4
    assert float(result.metrics["ratio_error"][0]) < 1e-12
    assert float(result.metrics["episodes"][0]) > 0
    assert np.isfinite(result.metrics["evaluation_return"]).all()
    # The logarithm of nine actions is the entropy at first, almost: 0.01 is the last layer's scale.
    assert 2 < float(result.metrics["entropy"][0]) < np.log(9) + 1e-9
    assert PPO.from_dict(json.loads(json.dumps(ppo.to_dict()))).environment[0].ship_sizes == (2,)


def test_a_rollout_stores_the_sum_of_the_parts(run):
    """The network's head is cut into as many distributions as an action has numbers."""
    ppo, *_ = run
    network = ppo.network(key=jax.random.key(1))
    actor = Actor(*ppo.environment)
    runner = actor.reset(network, 5, key=jax.random.key(2))
    assert runner.action.shape == (5, 2)

    @jax.jit
    def act(runner, key):
        _, step = actor.step(network, runner, key)
        return step, jax.vmap(network.step)(runner.memory, step.inputs)[1][0]

    step, policy = act(runner, jax.random.key(3))
    assert policy.logits.shape == (5, 6)
    rows, columns = Categorical(policy.logits[:, :3]), Categorical(policy.logits[:, 3:])
    expected = rows.log_prob(step.action[:, 0]) + columns.log_prob(step.action[:, 1])
    np.testing.assert_allclose(step.log_prob, expected, rtol=1e-12)
    assert (step.action >= 0).all() and (step.action < 3).all()


def test_a_loaded_policy_acts_as_in_training(run):
    ppo, folder, _ = run
    policy = agents.load_policy(folder)
    actor = Actor(*ppo.environment)
    runner = actor.reset(policy.network, 1, key=jax.random.key(4))
    act = eqx.filter_jit(policy.act)
    step = jax.jit(lambda r, k: actor.step(policy.network, r, k, greedy=True))
    carried = policy.init_state()
    for t in range(12):  # over the end of an episode
        carried, action = act(carried, runner.observation[0], runner.begin[0])
        runner, taken = step(runner, jax.random.key(t))
        np.testing.assert_array_equal(action, taken.action[0])
    assert int(taken.episode_length[0]) < 12
    _, drawn = act(carried, runner.observation[0], runner.begin[0], key=jax.random.key(5))
    assert drawn.shape == (2,) and drawn.dtype == jnp.int32
