"""SAC's and TD3's updates against loops, what their gradients reach, and bad settings."""

import dataclasses
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from gymnax.environments import spaces

import agents
import zoo
from agents import envs
from agents.networks.continuous import NoisyAction
from tests.agents.test_dqn import values_in_a_loop

SMALL = {
    "env": "PositionOnlyPendulumEasy",
    "memory": zoo.spec("gru", hidden=4),
    "num_envs": 2,
    "rollout_length": 8,
    "updates": 1,
    "replay_steps": 1024,
    "warm_up": 420,
    "batch_steps": 12,
    "encoder_size": 5,
    "head_size": 6,
    "previous_action": True,
}


def small(kind, **options):
    return kind(**(SMALL | options))


def _without_bounds():
    """As gymnax and the bridge to gymnasium write it: by the largest float32."""
    env, params = envs.make("PositionOnlyPendulumEasy")
    largest = jnp.full(1, jnp.finfo(jnp.float32).max)
    env._actions = spaces.Box(-largest, largest, (1,))
    return env, params


@cache
def played(kind, count=26):
    """The state once an episode of 200 steps is complete, before the first update.

    How it will learn does not matter until then.
    """
    agent = small(kind)
    state = jax.jit(lambda: agent.init(key=jax.random.key(0)))()
    iterate = jax.jit(agent.iterate)
    for _ in range(count):
        state, report = iterate(state)
    return state, report


@cache
def drawn(agent):
    """A learner whose networks differ, a sample with both ends, and its rows."""
    state, report = played(type(agent))
    assert jnp.isnan(report.metrics["critic_loss"]) and not report.learned
    sample = jax.jit(agent._drawn)(state.replay, jax.random.key(3))
    rows = sample.rows
    # Some rewards, and a termination in the middle: this environment has none.
    reward = jnp.sin(jnp.arange(rows.reward.size)).reshape(rows.reward.shape)
    terminated = rows.terminated.at[5].set(True)
    rows = dataclasses.replace(rows, reward=reward, terminated=terminated)
    keys = iter(list(jax.random.split(jax.random.key(1), 100)))

    def moved(x):
        return (
            x + 0.3 * jax.random.normal(next(keys), x.shape, x.dtype)
            if eqx.is_inexact_array(x)
            else x
        )

    def where(learner):
        follow = [learner.target] if hasattr(learner, "target") else learner.targets
        return [learner.critic, *follow]

    networks = eqx.filter_jit(lambda networks: jax.tree.map(moved, networks))(where(state.learner))
    return eqx.tree_at(where, state.learner, networks), dataclasses.replace(sample, rows=rows)


@cache
def learning(agent):
    """An update `(learner, sample, key)`, one program for all tests of an agent."""
    return jax.jit(agent._learned)


@eqx.filter_jit
def along(network, rows):
    """The outputs of a network that steps along a sample's rows, from the zero state."""
    start = jnp.zeros((rows.reward.shape[1], 4))
    return values_in_a_loop(network, rows, start, 0)


def both_values(critic, read, action):
    values = lambda head, *given: jax.vmap(jax.vmap(head.values))(*given)  # noqa: E731
    return np.asarray(eqx.filter_jit(values)(critic.head, read, action))


@eqx.filter_jit
def sample_and_log_prob(policy, key):
    return policy.sample_and_log_prob(key)


def bootstrapped_by_hand(rows, mask, following, discount):
    wanted = np.zeros(mask.shape)
    for t, sequence in zip(*np.nonzero(mask), strict=True):
        wanted[t, sequence] = rows.reward[t, sequence]
        if not rows.terminated[t, sequence]:
            wanted[t, sequence] += discount * following[t, sequence]
    return wanted


def critic_loss_by_hand(learner, rows, mask, wanted):
    values = both_values(learner.critic, along(learner.critic, rows)[:-1], rows.action[:-1])
    squares = 0.5 * ((values - wanted[..., None]) ** 2).sum(-1)
    return squares[mask].mean()


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["tape", "zero"])
def test_sac_learns_towards_the_soft_value_of_the_next_step(sampling):
    options = {"segment": 6} if sampling == "zero" else {}
    sac = small(agents.SAC, sampling=sampling, **options)
    learner, sample = drawn(sac)
    rows, mask, key = sample.rows, np.asarray(sample.mask), jax.random.key(7)
    assert mask.sum() == 12
    policy = jax.tree.map(lambda x: x[1:], along(learner.actor, rows))
    action, log_prob = sample_and_log_prob(policy, key)
    np.testing.assert_allclose(policy.log_prob(action), log_prob, rtol=1e-6)
    values = both_values(learner.target, along(learner.target, rows)[1:], action)
    soft = values.min(-1) - np.exp(learner.log_temperature) * np.asarray(log_prob)
    expected = bootstrapped_by_hand(rows, mask, soft, sac.discount)
    found = jax.jit(sac._target)(learner, sample, key)
    np.testing.assert_allclose(np.asarray(found)[mask], expected[mask], rtol=1e-9)
    loss, _ = jax.jit(sac._critic_loss)(learner.critic, found, sample)
    np.testing.assert_allclose(loss, critic_loss_by_hand(learner, rows, mask, expected), rtol=1e-9)


@pytest.mark.slow
def test_sacs_actor_and_temperature():
    sac = small(agents.SAC)
    learner, sample = drawn(sac)
    rows, mask, key = sample.rows, np.asarray(sample.mask), jax.random.key(7)
    temperature = jnp.exp(learner.log_temperature)
    policy = jax.tree.map(lambda x: x[:-1], along(learner.actor, rows))
    action, log_prob = sample_and_log_prob(policy, key)
    values = both_values(learner.critic, along(learner.critic, rows)[:-1], action).min(-1)
    expected = (temperature * log_prob - values)[mask].mean()
    loss, metrics = jax.jit(sac._actor_loss)(
        learner.actor, learner.critic, temperature, sample, key
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-9)
    np.testing.assert_allclose(metrics["entropy"], -np.asarray(log_prob)[mask].mean(), rtol=1e-9)

    # A policy with too much entropy has its temperature lowered, one with too little raised.
    assert sac._entropy < metrics["entropy"] < 9
    for agent, sign in ((sac, -1), (dataclasses.replace(sac, target_entropy=9.0), 1)):
        after, _ = learning(agent)(learner, sample, key)
        assert sign * (after.log_temperature - learner.log_temperature) > 0
    assert float(small(agents.SAC)._entropy) == pytest.approx(np.log(2) - 1)


@pytest.mark.slow
def test_td3_learns_towards_the_smoothed_value_of_the_next_step():
    td3 = small(agents.TD3, target_noise=0.4)
    learner, sample = drawn(td3)
    rows, mask, key = sample.rows, np.asarray(sample.mask), jax.random.key(7)
    actor, critic = learner.targets
    action = np.asarray(along(actor, rows).action[1:])
    noise = 0.4 * np.asarray(jax.random.normal(key, action.shape))
    assert (np.abs(noise) > 0.5).any(), "nothing is clipped"
    action = np.clip(action + 2 * np.clip(noise, -0.5, 0.5), -2, 2)
    values = both_values(critic, along(critic, rows)[1:], jnp.asarray(action)).min(-1)
    expected = bootstrapped_by_hand(rows, mask, values, td3.discount)
    found = jax.jit(td3._target)(learner, sample, key)
    np.testing.assert_allclose(np.asarray(found)[mask], expected[mask], rtol=1e-9)

    taken = along(learner.actor, rows).action[:-1]
    values = both_values(learner.critic, along(learner.critic, rows)[:-1], taken)[..., 0]
    loss, _ = jax.jit(td3._actor_loss)(learner.actor, learner.critic, sample)
    np.testing.assert_allclose(loss, -values[mask].mean(), rtol=1e-9)


@pytest.mark.slow
def test_td3_moves_the_actor_and_the_targets_every_other_update():
    td3 = small(agents.TD3)
    learner, sample = drawn(td3)
    learn = learning(td3)
    first, _ = learn(learner, sample, jax.random.key(0))
    second, _ = learn(first, sample, jax.random.key(1))
    same = lambda a, b: eqx.tree_equal(a, b)  # noqa: E731
    assert same(first.actor, learner.actor) and same(first.targets, learner.targets)
    assert not same(first.critic, learner.critic) and not same(second.actor, first.actor)
    follows = jax.tree.map(lambda a, b: 0.995 * a + 0.005 * b, first.targets[1], second.critic)
    for a, b in zip(*map(jax.tree.leaves, (second.targets[1], follows)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.slow
def test_seeds_of_td3_side_by_side_learn_as_each_alone():
    """Also where one began to learn an update later, so that they are never due together."""
    td3 = small(agents.TD3)
    learner, sample = drawn(td3)
    behind = eqx.tree_at(lambda one: one.updates, learner, learner.updates + 1)
    pair = jax.tree.map(lambda *leaves: jnp.stack(leaves), learner, behind)
    key = jax.random.key(0)
    together, _ = jax.jit(jax.vmap(td3._learned, (0, None, None)))(pair, sample, key)
    for place, one in enumerate((learner, behind)):
        alone, _ = learning(td3)(one, sample, key)
        found = jax.tree.map(lambda x, i=place: x[i], together)
        for a, b in zip(*map(jax.tree.leaves, (found, alone)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [agents.SAC, agents.TD3])
def test_the_critics_move_by_their_own_loss_alone(kind):
    """Nothing of the actor's gradient reaches the critics' memory."""
    agent = small(kind)
    learner, sample = drawn(agent)
    key = jax.random.key(5)
    target_key = jax.random.split(key)[0] if kind is agents.SAC else key

    @jax.jit
    def step(learner):
        wanted = agent._target(learner, sample, target_key)
        gradient = jax.grad(lambda c: agent._critic_loss(c, wanted, sample)[0])(learner.critic)
        optimizer = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(3e-4))
        updates, _ = optimizer.update(gradient, optimizer.init(learner.critic))
        return optax.apply_updates(learner.critic, updates)

    found = learning(agent)(learner, sample, key)[0].critic
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(step(learner)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_noise_is_clipped_to_the_box():
    policy = NoisyAction(jnp.full((4000, 1), 1.5), jnp.ones(1), -2 * jnp.ones(1), 2 * jnp.ones(1))
    with jax.numpy_rank_promotion("allow"):
        drawn = np.asarray(policy.sample(jax.random.key(0)))
    assert drawn.min() >= -2 and (drawn == 2).mean() == pytest.approx(0.3085, abs=0.03)
    assert np.median(drawn) == pytest.approx(1.5, abs=0.1)
    np.testing.assert_array_equal(policy.mode(), policy.action)


@pytest.mark.parametrize("kind", [agents.SAC, agents.TD3])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"env": "t_maze"}, r"`env` \(=t_maze\) must have actions in a bounded Box of one axis"),
        ({"env": _without_bounds()}, r"must have actions in a bounded Box of one axis"),
        (
            {"sampling": "stored", "segment": 6},
            r"`sampling` \(='stored'\) must be tape or zero: the critics'",
        ),
    ],
)
def test_bad_settings_are_named(kind, options, message):
    with pytest.raises(ValueError, match=message):
        small(kind, **options)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (agents.SAC, {"temperature": 0.0}, r"`temperature` \(=0.0\) must be above 0"),
        (agents.TD3, {"noise": -0.1}, r"`noise` \(=-0.1\) must be at least 0"),
        (agents.TD3, {"policy_delay": 0}, r"`policy_delay` \(=0\) must be a whole number of at"),
    ],
)
def test_bad_numbers_are_named(kind, options, message):
    with pytest.raises(ValueError, match=message):
        small(kind, **options)


def test_a_clip_of_no_noise_is_told():
    told = r"`target_noise_clip` \(=0.1\) has no effect with `target_noise=0`"
    with pytest.warns(UserWarning, match=told):
        small(agents.TD3, target_noise=0.0, target_noise_clip=0.1)
