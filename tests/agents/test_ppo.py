"""PPO's iteration against loops by hand, its normalizations, and bad settings."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import agents
import zoo
from agents.networks import Inputs
from agents.networks.layers import ACTIVATIONS
from tests.agents.by_hand import episodes, gae_by_hand, values
from tests.agents.tasks import Square, Tape

SMALL = {
    "num_envs": 2,
    "rollout_length": 8,
    "minibatches": 1,
    "epochs": 1,
    "encoder_size": 6,
    "head_size": 6,
    "previous_action": True,
    "previous_reward": True,
}


def small(env="CartPole-v1", **options):
    memory = zoo.spec("rtu", hidden=5)
    return agents.PPO(env=env, **({"memory": memory, "gradient": agents.RTRL(4)} | SMALL | options))


def iterations(ppo, count):
    """The states before each of some iterations and after the last, and the reports."""
    states, reports = [jax.jit(lambda: ppo.init(key=jax.random.key(0)))()], []
    iterate = jax.jit(ppo.iterate)
    for _ in range(count):
        state, report = iterate(states[-1])
        states.append(state)
        reports.append(report)
    return states, reports


def advantages(ppo, network, time, reward, terminated, truncated, seen=lambda x: x):
    value, following = values(network, ppo.environment[0], time, seen)
    return value, gae_by_hand(
        *(x[:, None] for x in (reward, value, following, terminated, truncated)),
        ppo.discount,
        ppo.gae_lambda,
    )[:, 0]


# How episodes of 4 steps end: by the environment, by the time limit.
ENDS = [(4, 100), (100, 4)]


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(("length", "limit"), ENDS)
def test_an_iteration_learns_from_the_advantages_by_hand(length, limit):
    """Everything is known: there is one action, so that the value loss is the advantages' square.

    The second rollout carries memory, previous action and reward over from the first.
    """
    env = Tape(length, limit)
    ppo = small(env, rollout_length=6, gradient=agents.RTRL(3), learning_rate=1e-12)
    (state, *_), reports = iterations(ppo, 2)
    whole = episodes(env, 12)
    _value, _ = values(state.learner.network, env, whole[0], lambda x: x)
    for number, report in enumerate(reports):
        time, reward, terminated, truncated = (x[6 * number :][:6] for x in whole)
        _, advantage = advantages(ppo, state.learner.network, time, reward, terminated, truncated)
        found = report.metrics
        np.testing.assert_allclose(found["value_loss"], 0.5 * np.mean(advantage**2), rtol=1e-6)
        assert abs(float(found["policy_loss"])) < 1e-9 and float(found["ratio_error"]) < 1e-12
        np.testing.assert_allclose(report.episodes["episodes"], 2 * (terminated | truncated).sum())
        np.testing.assert_allclose(report.episodes["return"], whole[1][:4].sum(), rtol=1e-6)


@pytest.mark.slow
def test_a_clipped_value_is_anchored_at_the_value_of_the_rollout():
    env = Tape(4, 100)
    ppo = small(env, value_clip=0.01, learning_rate=0.1, epochs=2)
    (before, _), (report,) = iterations(ppo, 1)
    (_, between), (first,) = iterations(dataclasses.replace(ppo, epochs=1), 1)
    time, *rest = episodes(env, 8)
    old, advantage = advantages(ppo, before.learner.network, time, *rest)
    target = old + advantage
    new, _ = values(between.learner.network, env, time, lambda x: x)
    assert (np.abs(new - old) > 0.02).all(), "nothing is clipped"
    moved = old + np.clip(new - old, -0.01, 0.01)
    second = 0.5 * np.mean(np.maximum((new - target) ** 2, (moved - target) ** 2))
    assert abs(second - 0.5 * np.mean((new - target) ** 2)) > 1e-3
    expected = (float(first.metrics["value_loss"]) + second) / 2
    np.testing.assert_allclose(report.metrics["value_loss"], expected, rtol=1e-6)


def stored_values(old, new, env, time, segment):
    """Values by `new` along `time` from states of `old` at segments' starts, and what follows each.

    For one episode that does not end; after the last step, from the state of `old`.
    """
    inputs = [
        Inputs(
            Tape.observation(jnp.int32(t)),
            jnp.int32(0),
            Tape.reward(jnp.int32(t)) * bool(t),
            jnp.bool_(t == 0),
        )
        for t in (*time, time[-1] + 1)
    ]
    step = jax.jit(lambda network, state, inputs: network.step(state, inputs))
    behind, state, found = old.init_state(), None, []
    for number, one in enumerate(inputs):
        if number % segment == 0:
            state = behind
        state, (_, value) = step(new, state, one)
        behind, _ = step(old, behind, one)
        found.append(float(value))
    return np.array(found[:-1]), np.array(found[1:])


FRESH = {"learning_rate": 0.1, "rollout_length": 6, "value_clip": 0.05}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"targets": "fresh"}, r"`targets` \(='fresh'\) has no effect with `epochs=1`"),
        (
            {"gradient": agents.RTRL(4, refresh="epoch")},
            r"`refresh` \(='epoch'\) has no effect with `epochs=1`",
        ),
    ],
)
def test_what_one_pass_has_no_use_for_is_told(options, told):
    with pytest.warns(UserWarning, match=told):
        small(Tape(100, 100), epochs=1, **options)


def test_an_activation_of_no_layer_is_told():
    told = r"`activation` \(='tanh'\) has no effect with `encoder_size=0` and `head_size=0`"
    with pytest.warns(UserWarning, match=told):
        small(activation="tanh", encoder_size=0, head_size=0)


@functools.cache
def after_one_epoch():
    """The network after the first epoch, before anything is refreshed, and its value loss."""
    once = small(Tape(100, 100), gradient=agents.RTRL(3), epochs=1, **FRESH)
    (_, between), (first,) = iterations(once, 1)
    return between.learner.network, float(first.metrics["value_loss"])


@pytest.mark.slow
@pytest.mark.parametrize("refresh", [pytest.param("epoch", marks=pytest.mark.slow), "never"])
def test_fresh_targets_are_of_the_values_of_then_and_the_anchor_stays(refresh):
    """In the second epoch; the rollout ends within an episode, so that what follows counts."""
    env = Tape(100, 100)
    gradient = agents.RTRL(3, refresh=refresh)
    ppo = small(env, targets="fresh", gradient=gradient, epochs=2, **FRESH)
    (before, _), (report,) = iterations(ppo, 1)
    old_network, (network, first_loss) = before.learner.network, after_one_epoch()
    time, reward, *ends = episodes(env, 6)
    old, _ = values(old_network, env, time, lambda x: x)
    if refresh == "epoch":
        new, following = values(network, env, time, lambda x: x)
    else:
        new, following = stored_values(old_network, network, env, time, 3)
        assert np.abs(new - values(network, env, time, lambda x: x)[0]).max() > 1e-4
    advantage = gae_by_hand(
        *(x[:, None] for x in (reward, new, following, *ends)), ppo.discount, ppo.gae_lambda
    )[:, 0]
    moved = old + np.clip(new - old, -0.05, 0.05)
    assert (np.abs(new - old) > 0.1).all(), "nothing is clipped"
    target = new + advantage
    second = 0.5 * np.mean(np.maximum(advantage**2, (moved - target) ** 2))
    expected = (first_loss + second) / 2
    np.testing.assert_allclose(report.metrics["value_loss"], expected, rtol=1e-6)


@pytest.mark.slow
def test_clip_and_entropy_fall_linearly_with_the_rate():
    ppo = small(
        anneal_steps=32,
        clip=1e-7,
        final_clip=0.6,
        entropy_coefficient=0.4,
        final_entropy_coefficient=0.1,
    )
    now = ppo._falling
    # Training rounds steps up to iterations, and so does what falls: the last one has the end.
    longer = dataclasses.replace(ppo, anneal_steps=33)
    assert float(longer._falling(jnp.int32(2), 0.4, 0.1)) == pytest.approx(0.2)
    np.testing.assert_allclose(
        [now(jnp.int32(i), 0.3, 0.1) for i in range(4)], [0.3, 0.2, 0.1, 0.1]
    )
    assert now(jnp.int32(9), 0.3, None) == 0.3
    states, reports = iterations(dataclasses.replace(ppo, learning_rate=0.02, epochs=1), 3)
    weights = [np.asarray(state.learner.network.features.encoder.linear.w) for state in states]
    moves = [np.abs(b - a).max() for a, b in itertools.pairwise(weights)]
    assert moves[0] > 0.01 and 0 < moves[1] < 0.016 and moves[2] == 0
    for report, expected in zip(reports, (0.4, 0.25, 0.1), strict=True):
        m = {name: float(value) for name, value in report.metrics.items()}
        found = (m["policy_loss"] + 0.5 * m["value_loss"] - m["loss"]) / m["entropy"]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    ppo = dataclasses.replace(ppo, epochs=2, learning_rate=1e-4)
    clipped = [float(r.metrics["clip_fraction"]) for r in iterations(ppo, 2)[1]]
    assert clipped[0] > 0 and clipped[1] == 0


@pytest.mark.slow
def test_actors_and_critics_with_memories_of_their_own_leave_each_other_alone():
    ppo = small(separate_memories=True, activation="tanh", value_coefficient=0.0, epochs=2)
    (before, after), _ = iterations(ppo, 1)
    old, new = before.learner.network, after.learner.network
    same = jax.tree.map(np.array_equal, *map(jax.tree.leaves, (old.critic, new.critic)))
    assert all(same)
    changed = jax.tree.map(np.array_equal, *map(jax.tree.leaves, (old.actor, new.actor)))
    assert not any(changed)
    assert new.actor.head.layers.activation is ACTIVATIONS["tanh"]
    assert new.actor.features.encoder.activation is ACTIVATIONS["tanh"]


@pytest.mark.slow
def test_squashed_actions_stay_in_their_box():
    ppo = small("Pendulum-v1", squash_actions=True, memory=zoo.spec("gru", hidden=5))
    (_, state), (report,) = iterations(ppo, 1)
    assert float(report.metrics["ratio_error"]) < 1e-10
    behavior = ppo.policy(state.learner).behavior
    acting = state.actors.acting
    draw = lambda key: behavior(acting.memory, acting.inputs(), key)[1].action  # noqa: E731
    drawn = jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), 500))
    assert 1.8 < float(jnp.abs(drawn).max()) <= 2


def test_observations_are_normalized_by_the_statistics_of_those_the_environment_gave():
    env = Tape(4, 100)
    ppo = small(env, normalize_observation=True, learning_rate=1e-12)
    states, reports = iterations(ppo, 3)
    time, *rest = episodes(env, 8)
    given = np.array([Tape.observation(jnp.int32(t)) for t in time], float)
    for number, (state, report) in enumerate(zip(states, reports, strict=False)):
        statistics = state.learner.observation_statistics
        mean, variance = (given.mean(0), given.var(0)) if number else (np.zeros(2), np.ones(2))
        np.testing.assert_allclose(statistics.mean, mean, rtol=1e-6)
        np.testing.assert_allclose(statistics.variance, variance, rtol=1e-6)
        assert statistics.count == 16 * number
        seen = lambda x, m=mean, v=variance: (x - m) / np.sqrt(v + 1e-8)  # noqa: E731
        _, advantage = advantages(ppo, state.learner.network, time, *rest, seen=seen)
        expected = 0.5 * np.mean(advantage**2)
        np.testing.assert_allclose(report.metrics["value_loss"], expected, rtol=1e-5)


@pytest.mark.slow
def test_rewards_are_scaled_by_what_was_known_before_the_rollout():
    env = Tape(4, 100)
    ppo = small(env, normalize_reward=True, learning_rate=1e-12)
    states, reports = iterations(ppo, 2)
    time, reward, *ends = episodes(env, 8)
    running = np.zeros(8)
    for t in range(8):
        running[t] = reward[t] + (0.99 * running[t - 1] if time[t] else 0)
    for number, (state, report) in enumerate(zip(states, reports, strict=False)):
        variance = running.var() if number else 1.0
        np.testing.assert_allclose(state.learner.return_statistics.variance, variance, rtol=1e-6)
        scaled = reward / np.sqrt(variance)
        _, advantage = advantages(ppo, state.learner.network, time, scaled, *ends)
        expected = 0.5 * np.mean(advantage**2)
        np.testing.assert_allclose(report.metrics["value_loss"], expected, rtol=1e-5)
        # The report is of the environment's own rewards.
        np.testing.assert_allclose(report.episodes["return"], reward[:4].sum(), rtol=1e-6)


@pytest.mark.slow
def test_the_first_ratio_is_one_in_float32(float32):
    """The states that acted are rounded otherwise than those that RTRL rolls."""
    ppo = small(gradient=agents.RTRL(8), rollout_length=64, minibatches=2)
    _, reports = iterations(ppo, 3)
    assert max(float(report.metrics["ratio_error"]) for report in reports) <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "options"), [("Pendulum-v1", {}), ("Battleship", {"board_size": 3, "ship_sizes": [2]})]
)
def test_actions_of_other_kinds(env, options):
    ppo = small(env, env_options=options, memory=zoo.spec("gru", hidden=5))
    _, reports = iterations(ppo, 1)
    assert float(reports[0].metrics["ratio_error"]) < 1e-10
    assert np.isfinite(float(reports[0].metrics["loss"]))


@pytest.mark.slow
def test_staleness_is_measured_now_and_then():
    ppo = small(Tape(6, 100), staleness_every=2, learning_rate=0.05)
    _, reports = iterations(ppo, 3)
    first, none, third = (float(report.diagnostics["staleness"]) for report in reports)
    assert np.isnan(none) and 0.5 < first < 1 and third < 1 - 1e-6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rollout_length": 18}, r"`rollout_length` \(=18\) must be divisible by `segment` \(=4\)"),
        (
            {"num_envs": 1, "rollout_length": 8, "minibatches": 8, "gradient": agents.TBPTT(1)},
            r"`minibatches` \(=8\) must leave two steps or more for each, of 8",
        ),
        ({"minibatches": 3}, r"`minibatches` \(=3\) must divide the number of segments \(=4"),
        ({"num_envs": 0}, r"`num_envs` \(=0\) must be a whole number of at least 1"),
        ({"encoder_size": -1}, r"`encoder_size` \(=-1\) must be a whole number of at least 0"),
        ({"discount": 1.5}, r"`discount` \(=1.5\) must be in \[0, 1\]"),
        ({"learning_rate": 0.0}, r"`learning_rate` \(=0.0\) must be above 0"),
        ({"env": Square(4)}, r"`env` \(=Square\) must have actions of one axis"),
        ({"encoder_credit": "exact", "encoder_size": 0}, r"needs an encoder; `encoder_size` is 0"),
        ({"anneal_steps": 0}, r"`anneal_steps` \(=0\) must be a whole number of at least 1, or"),
        (
            {"num_envs": 4, "epochs": 1000, "anneal_steps": 2**31 - 1},
            r"`anneal_steps` \(=2147483647\) must be at most 2147483647 updates of the optimizer",
        ),
        ({"final_clip": 0.1}, r"`final_clip` \(=0.1\) must be None without `anneal_steps`"),
        ({"squash_actions": True}, r"`squash_actions` \(=True\) needs actions in a bounded Box"),
        ({"value_clip": 0.0}, r"`value_clip` \(=0.0\) must be above 0, or None"),
        ({"entropy_coefficient": -0.1}, r"`entropy_coefficient` \(=-0.1\) must be at least 0"),
        ({"env": "RepeatPreviousEasie"}, "RepeatPreviousEasy"),
        ({"env_options": {"wind": 3}}, r"Unknown option `wind` \(=3\) of CartPole-v1"),
        (
            {"env": "RepeatPreviousEasy", "normalize_observation": True},
            r"`normalize_observation` \(=True\) needs a Box observation; RepeatPreviousEasy has",
        ),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        small(**options)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("memory", "rtu", r"`memory` \(='rtu'\) must be a recipe, such as zoo.spec"),
        ("gradient", "rtrl", r"`gradient` \(='rtrl'\) must be a choice, such as agents.RTRL"),
        ("targets", "new", r"`targets` \(='new'\) must be one of stale, fresh"),
        ("activation", "gelu", r"`activation` \(='gelu'\) must be one of relu, tanh"),
    ],
)
def test_names_in_place_of_choices_are_refused(unhooked, name, value, message):
    with pytest.raises((TypeError, ValueError), match=message):
        small(**{name: value})
