"""R2AC's loss, gradient and update against plain loops; what its actors carry; bad settings."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import agents
import zoo
from agents.acting import ByPolicy
from agents.algorithms.r2ac import Unroll
from agents.learning.credit import along
from agents.networks import Inputs
from tests.agents.by_hand import episodes, values, vtrace_by_hand
from tests.agents.tasks import Square, Tape

SMALL = {
    "num_envs": 2,
    "unroll_length": 6,
    "previous_action": True,
    "head_size": 6,
    "reward_clip": None,
}


def small(env="MemoryChain-bsuite", memory="elstm", **options):
    recipe = zoo.spec(memory, hidden=5)
    return agents.R2AC(env=env, memory=recipe, **(SMALL | options))


def iterations(agent, count):
    """The states before each of some iterations and after the last, and the reports."""
    states, reports = [jax.jit(lambda: agent.init(key=jax.random.key(0)))()], []
    iterate = jax.jit(agent.iterate)
    for _ in range(count):
        state, report = iterate(states[-1])
        states.append(state)
        reports.append(report)
    return states, reports


# The loss and its gradient

TIME, ENVS = 6, 3


def two_unrolls():
    """Inputs `[2 * TIME + 1, env]` with episodes' ends anywhere; the loss is of the second half."""
    draw = np.random.default_rng(0)
    shape = (2 * TIME + 1, ENVS)
    terminated, truncated = draw.random((2, *shape)) < 0.15
    # In the last environment, something that goes on from one half to the other.
    terminated[:TIME, -1] = truncated[:TIME, -1] = False
    begin = np.concatenate([np.ones((1, ENVS), bool), (terminated | truncated)[:-1]])
    assert begin[TIME + 1 : -1].any()
    inputs = Inputs(
        *map(
            jnp.asarray,
            (draw.normal(size=(*shape, 3)), draw.integers(2, size=shape), draw.normal(size=shape)),
        ),
        jnp.asarray(begin),
    )
    part = slice(TIME, 2 * TIME)
    rest = {
        "action": draw.integers(2, size=shape)[part],
        "log_prob": np.log(draw.uniform(0.2, 0.9, size=shape))[part],
        "reward": draw.normal(size=shape)[part],
        "terminated": terminated[part],
        "truncated": truncated[part],
        "last": draw.normal(size=shape)[part],
    }
    return inputs, jax.tree.map(jnp.asarray, rest)


def loss_of(agent):
    """Loss and gradient by the agent, for the second unroll with what the first one carried."""
    inputs, rest = two_unrolls()
    first, second = (
        jax.tree.map(lambda x, i=i: x[i * TIME : (i + 1) * TIME], inputs) for i in (0, 1)
    )
    following = jax.tree.map(lambda x: x[2 * TIME], inputs)
    unroll = Unroll(inputs=second, following=following, **rest)

    @jax.jit
    def of(key):
        network = agent.network(key=key)
        start = jax.tree.map(
            lambda x: jnp.broadcast_to(x, (ENVS, *x.shape)), agent.gradient.begin(network)
        )
        carry, _ = along(agent.gradient, network, start, first)
        _, starts = along(agent.gradient, network, carry, second)
        function = eqx.filter_value_and_grad(agent._loss, has_aux=True)
        (loss, metrics), gradient = function(network, unroll, starts)
        return loss, metrics, gradient

    return of(jax.random.key(1))


def loss_by_hand(agent):
    """The same by a loop over steps and environments, with autodiff through all of it."""
    inputs, rest = two_unrolls()

    def run(network):
        def step(state, now):
            state, (policy, value) = network.step(state, now)
            return state, (policy.logits, value)

        def env(inputs):
            return jax.lax.scan(step, network.init_state(), inputs)[1]

        return jax.vmap(env, 1, 1)(inputs)

    network = agent.network(key=jax.random.key(1))
    logits, value = map(np.asarray, jax.jit(run)(network))
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    steps, envs = np.arange(TIME, 2 * TIME)[:, None], np.arange(ENVS)[None]
    log_prob = log_p[steps, envs, np.asarray(rest["action"])]
    ratio = np.exp(log_prob - np.asarray(rest["log_prob"]))
    done = np.asarray(rest["terminated"] | rest["truncated"])
    following = np.where(done, rest["last"], value[TIME + 1 :])
    target, advantage = vtrace_by_hand(
        ratio,
        *(np.asarray(rest["reward"]), value[TIME:-1], following),
        *(np.asarray(rest["terminated"]), np.asarray(rest["truncated"])),
        agent.discount,
        agent.max_ratio,
        agent.max_trace,
    )

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(network):
        logits, value = run(network)
        log_p = jax.nn.log_softmax(logits[TIME:-1])
        taken = log_p[np.arange(TIME)[:, None], envs, rest["action"]]
        entropy = -jnp.sum(jnp.exp(log_p) * log_p)
        return (
            -jnp.sum(advantage * taken)
            + agent.value_coefficient * 0.5 * jnp.sum((value[TIME:-1] - target) ** 2)
            - agent.entropy_coefficient * entropy
        )

    return ratio, *loss(network)


def difference(found, expected):
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    return max(float(jnp.abs(a - b).max() / jnp.abs(b).max()) for a, b in pairs)


@pytest.mark.slow
def test_loss_and_gradient_are_those_of_the_plain_loop():
    """RTRL's gradient reaches into the unroll before, that of TBPTT does not."""
    bounds = {"max_ratio": 1.3, "max_trace": 0.8}
    ratio, value, gradient = loss_by_hand(small(**bounds))
    assert ratio.max() > 1.3 and ratio.min() < 0.8
    for choice in (agents.RTRL(segment=None), agents.RTRL(3)):
        loss, metrics, found = loss_of(small(gradient=choice, **bounds))
        np.testing.assert_allclose(loss, value, rtol=1e-9)
        np.testing.assert_allclose(metrics["ratio"], ratio.mean(), rtol=1e-9)
        np.testing.assert_allclose(metrics["ratio_deviation"], abs(ratio - 1).max(), rtol=1e-9)
        assert difference(found, gradient) < 1e-9
    loss, _, found = loss_of(small(gradient=agents.TBPTT(TIME), **bounds))
    np.testing.assert_allclose(loss, value, rtol=1e-9)
    assert difference(found.head, gradient.head) < 1e-9
    assert difference(found.memory, gradient.memory) > 1e-3


@pytest.mark.slow
def test_from_a_beginning_the_three_gradients_agree():
    (_, state), (report,) = iterations(small(gradient=agents.RTRL(3)), 1)
    for choice in (agents.BPTT(), agents.TBPTT(6)):
        (_, other), (found,) = iterations(small(gradient=choice), 1)
        for name in ("loss", "gradient_norm"):
            np.testing.assert_allclose(found.metrics[name], report.metrics[name], rtol=1e-9)
        assert difference(other.learner.network.memory, state.learner.network.memory) < 1e-9


@pytest.mark.parametrize(("length", "limit"), [(4, 100), (100, 4)])
@pytest.mark.quick_rows(1)
def test_targets_by_hand_over_the_ends_of_episodes(length, limit):
    """There is one action: the value loss is all. The second unroll goes on where the first ended.

    Rewards are clipped to learn from, and as the network sees them.
    """
    env, clip = Tape(length, limit), 2.2
    agent = small(env, memory="rtu", learning_rate=1e-12, reward_clip=clip)
    (state, *_), reports = iterations(agent, 2)
    time, reward, terminated, truncated = episodes(env, 12)
    assert (reward > clip).any() and (reward[:4] < clip).any()
    clipped = np.minimum(reward, clip)
    value, following = values(state.learner.network, env, time, lambda x: x, clip=clip)
    for number, report in enumerate(reports):
        part = slice(6 * number, 6 * number + 6)
        given = clipped, value, following, terminated, truncated
        target, _ = vtrace_by_hand(np.ones((6, 1)), *(x[part, None] for x in given), agent.discount)
        expected = 0.5 * np.mean((target[:, 0] - value[part]) ** 2)
        np.testing.assert_allclose(report.metrics["value_loss"], expected, rtol=1e-6)
        np.testing.assert_allclose(report.episodes["return"], reward[:4].sum(), rtol=1e-6)


@pytest.mark.slow
def test_the_policy_sees_clipped_rewards_outside_of_training_too():
    agent = small(reward_clip=0.5)
    policy = agent.policy(agent.init(key=jax.random.key(0)).learner)
    inputs = Inputs(
        jnp.zeros((3, 3)), jnp.zeros(3, int), jnp.array([-2.0, 0.2, 9.0]), jnp.ones(3, bool)
    )
    assert isinstance(policy.behavior, ByPolicy)
    np.testing.assert_array_equal(policy.behavior.seen(inputs).reward, [-0.5, 0.2, 0.5])


# Actors and optimizer


@pytest.mark.slow
def test_actors_that_lag_act_with_the_networks_of_before():
    options = {"learning_rate": 0.05, "num_envs": 8}
    _, reports = iterations(small(**options), 3)
    for report in reports:
        assert float(report.metrics["ratio_deviation"]) < 1e-12
        assert abs(float(report.metrics["ratio"]) - 1) < 1e-12
    states, reports = iterations(small(lag=2, **options), 4)
    off = [float(report.metrics["ratio_deviation"]) for report in reports]
    assert off[0] < 1e-12 and min(off[1:]) > 1e-4
    # The oldest comes first, and leaves after it has acted.
    for before, after in itertools.pairwise(state.learner for state in states):
        moved = (*before.behind, before.network)[1:]
        jax.tree.map(np.testing.assert_array_equal, *map(jax.tree.leaves, (after.behind, moved)))
    assert difference(states[4].learner.behind[0], states[4].learner.network) > 1e-6


@pytest.mark.slow
def test_all_values_are_the_learners():
    """With one action, and two episodes in an unroll, a lag could change nothing else."""
    options = {"env": Tape(100, limit=3), "learning_rate": 0.05}
    now, behind = (iterations(small(lag=lag, **options), 4)[0][-1].learner for lag in (0, 2))
    for a, b in zip(*(jax.tree.leaves(x.network) for x in (now, behind)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert difference(behind.network, behind.behind[0]) > 1e-3


def test_an_update_is_rmsprop_of_the_clipped_gradient_by_hand():
    agent = small(max_grad_norm=0.5, learning_rate=0.1)
    update: Any = jax.jit(agent.optimizer.update)
    state: Any = jax.jit(agent.optimizer.init)({"w": np.zeros(2), "v": np.zeros(1)})
    moment = np.zeros(3)
    for gradient in ([3.0, -4.0, 0.0], [0.1, 0.2, -0.2]):
        g = np.asarray(gradient) * min(1, 0.5 / np.linalg.norm(gradient))
        moment = 0.99 * moment + 0.01 * g**2
        given = {"w": np.array(gradient[:2]), "v": np.array(gradient[2:])}
        updates, state = update(given, state)
        found = np.concatenate([updates["w"], updates["v"]])
        np.testing.assert_allclose(found, -0.1 * g / (np.sqrt(moment) + 0.01), rtol=1e-6)


def test_the_learning_rate_falls_to_zero():
    agent = small(anneal_steps=24, learning_rate=0.1)
    params, following = np.ones(1), jax.jit(agent.optimizer.update)
    state, moves = jax.jit(agent.optimizer.init)(params), []
    for _ in range(3):
        update, state = following(params, state)
        moves.append(float(optax.tree.norm(jax.device_get(update))))
    assert moves[0] > 0 and 0 < moves[1] < moves[0] / 2 and moves[2] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gradient": agents.RTRL(4)}, r"`unroll_length` \(=6\) must be divisible by `segment`"),
        ({"num_envs": 0}, r"`num_envs` \(=0\) must be a whole number of at least 1"),
        ({"lag": -1}, r"`lag` \(=-1\) must be a whole number of at least 0"),
        ({"discount": 1.5}, r"`discount` \(=1.5\) must be in \[0, 1\]"),
        ({"max_ratio": 0.0}, r"`max_ratio` \(=0.0\) must be above 0"),
        ({"reward_clip": 0.0}, r"`reward_clip` \(=0.0\) must be above 0, or None"),
        ({"entropy_coefficient": -0.1}, r"`entropy_coefficient` \(=-0.1\) must be at least 0"),
        ({"gradient": agents.RTRL(3, refresh="epoch")}, r"`gradient` .* must have refresh='never'"),
        ({"env": Square(4)}, r"`env` \(=Square\) must have actions of one axis"),
        ({"encoder_credit": "exact", "encoder_size": 0}, r"needs an encoder; `encoder_size` is 0"),
        (
            {"encoder_credit": "exact", "encoder_size": 4, "gradient": agents.BPTT()},
            r"`encoder_credit` \(='exact'\) needs agents.RTRL",
        ),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        small(**options)
