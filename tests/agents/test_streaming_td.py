"""Prediction at every step: its updates by hand, its window of credit, and bad settings."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

import agents
import zoo
from agents.acting.episodes import play
from agents.algorithms.streaming_td import Learner
from agents.learning.traces import ObGDState, accumulate_trace, along_traces, cut_trace, obgd
from tests.agents.online import Adam, Online, obgd_by_hand, stream
from tests.agents.tasks import Tape

STEPS, DISCOUNT, DECAY = 14, 0.9, 0.7
MEMORY = zoo.spec("rtu", hidden=3, nonlinear=True)


def agent(env, **options):
    settings = {"discount": DISCOUNT, "trace_decay": DECAY, "previous_reward": True, "head_size": 4}
    return agents.StreamingTD(
        env=env, **({"memory": MEMORY, "rollout_length": STEPS} | settings | options)
    )


@pytest.mark.slow
def test_an_evaluation_plays_the_random_policy_too():
    """There is no best action that could be taken in its place."""
    td = agent("t_maze", num_envs=16)
    state = jax.jit(td.init)(key=jax.random.key(0))
    behavior = td.policy(state.learner).behavior
    acting = td.actor.reset(behavior, 16, key=jax.random.key(1))
    _, step = td.actor.step(behavior, acting, jax.random.key(2), greedy=True)
    assert len(set(step.action.tolist())) > 1
    env, params = td.environment
    shown = []
    for number in range(8):
        show = lambda state, _: shown.append(int(state.position))  # noqa: E731
        key = jax.random.key(number)
        play(env, params, td.policy(state.learner), show, episodes=1, steps=1, key=key)
    assert len(set(shown)) > 1


def test_a_wrapped_environment_keeps_its_discount():
    for options in ({}, {"external_memory": "K2"}):
        task = {"env": "trace_conditioning", "env_options": options}
        assert agents.StreamingTD(**task, memory=MEMORY).discount_factor == 0.9


def flat(network):
    return np.asarray(ravel_pytree(jax.tree.map(jnp.asarray, network))[0])


def by_hand(td, network, move, credit):
    """TD(λ) as the textbook has it, with dense Jacobians."""
    online = Online(network, lambda value, _: value, credit)
    w, z = np.asarray(online.start), np.zeros(online.start.shape)
    values, errors = [], []
    for now, following, reward, terminated, truncated in zip(
        *stream(td.environment[0], STEPS), strict=True
    ):
        value = online.step(w, now)
        z = DISCOUNT * td.trace_decay * z + online.gradient(w, now)
        after = 0.0 if terminated else online.following(w, following)
        errors.append(float(np.float32(reward) + DISCOUNT * after - value))
        values.append(float(value))
        w = move(w, z, errors[-1])
        if terminated or truncated:
            z = np.zeros_like(z)
    return w, np.array(values), np.array(errors)


CASES = {
    "adam": ({"learning_rate": 0.02}, lambda: Adam(0.02), None),
    "obgd": (
        {"optimizer": "obgd", "learning_rate": 1.0, "kappa": 0.5},
        lambda: lambda w, z, error: obgd_by_hand(w, z, error, 1.0, 0.5),
        None,
    ),
    "td0": ({"learning_rate": 0.02, "trace_decay": 0.0}, lambda: Adam(0.02), None),
    "tbptt1": ({"learning_rate": 0.02, "gradient": agents.TBPTT(1)}, lambda: Adam(0.02), 1),
    "tbptt3": ({"learning_rate": 0.02, "gradient": agents.TBPTT(3)}, lambda: Adam(0.02), 3),
}


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    ("name", "length", "limit"),
    [("adam", 5, 100), ("tbptt3", 100, 5), ("obgd", 5, 5), ("tbptt1", 100, 5), ("td0", 4, 100)],
)
def test_every_step_learns_what_the_loop_by_hand_does(name, length, limit):
    """Over ends of all kinds; a truncation is bootstrapped over, and cuts the trace too."""
    options, move, credit = CASES[name]
    td = agent(Tape(length, limit), **options)
    state = jax.jit(lambda: td.init(key=jax.random.key(0)))()
    w, _, errors = by_hand(td, state.learner.network, move(), credit)
    after, report = jax.jit(td.iterate)(state)
    np.testing.assert_allclose(flat(after.learner.network), w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(report.metrics["td_error"], np.abs(errors).mean(), rtol=1e-9)
    # It has moved, and far more than rounding.
    assert np.abs(flat(after.learner.network) - flat(state.learner.network)).max() > 1e-3


@pytest.mark.slow
def test_the_return_error_is_that_of_the_returns_in_hindsight():
    td = agent(Tape(5, 100), learning_rate=1e-9, rollout_length=10)
    state, report = jax.jit(td.iterate)(td.init(key=jax.random.key(0)))
    _, values, _ = by_hand(
        dataclasses.replace(td, rollout_length=STEPS), state.learner.network, lambda w, *_: w, None
    )
    reward = np.array([float(Tape.reward(jnp.int32(t + 1))) for t in range(5)])
    target = [sum(DISCOUNT**k * r for k, r in enumerate(reward[t:])) for t in range(5)]
    expected = np.mean((values[:10] - np.tile(target, 2)) ** 2)
    np.testing.assert_allclose(report.metrics["return_error"], expected, rtol=1e-6)


@pytest.mark.slow
def test_environments_share_a_network_and_average_their_updates():
    """All episodes of the tape are the same, so that the mean is what one of them does alone."""
    one, three = agent(Tape(5, 100)), agent(Tape(5, 100), num_envs=3)
    alone, _ = jax.jit(one.iterate)(one.init(key=jax.random.key(0)))
    state, _ = jax.jit(three.iterate)(three.init(key=jax.random.key(0)))
    np.testing.assert_allclose(
        flat(state.learner.network), flat(alone.learner.network), rtol=1e-9, atol=1e-12
    )
    assert isinstance(state.learner, Learner)


@pytest.mark.parametrize("adaptive", [False, True])
def test_obgd_bounds_each_environment_by_itself(adaptive):
    draw = np.random.default_rng(0)
    traces = {
        "a": draw.normal(size=(2, 3)),
        "b": draw.normal(size=(2, 2, 2)),
    }
    optimizer = obgd(0.5, 3.0, adaptive=adaptive, moment_decay=0.9)
    state = jax.jit(lambda z: optimizer.init(jax.tree.map(lambda z: z[0], z)))(traces)
    following = jax.jit(optimizer.update)
    moment = np.zeros(7)
    for number in range(1, 4):
        errors = draw.normal(size=2) * 2
        update, state = following(traces, errors, state)
        z = np.stack([np.concatenate([traces["a"][i], traces["b"][i].ravel()]) for i in range(2)])
        if adaptive:
            moment = 0.9 * moment + 0.1 * ((errors[:, None] * z) ** 2).mean(0)
            z = z / (np.sqrt(moment / (1 - 0.9**number)) + 1e-8)
        steps = [obgd_by_hand(np.zeros(7), *pair, 0.5, 3.0) for pair in zip(z, errors, strict=True)]
        flat_update = np.concatenate([update["a"], np.ravel(update["b"])])
        np.testing.assert_allclose(flat_update, np.mean(steps, 0), rtol=1e-9)
    as_published = jax.jit(obgd(0.5).update)
    small = jax.tree.map(lambda z: 1e-6 * z[0], traces)
    update, _ = as_published(small, 0.3, ())
    np.testing.assert_allclose(update["a"], 0.15 * small["a"], rtol=1e-9)  # nothing is cut
    update, _ = as_published({"a": jnp.full(4, 5.0)}, 0.3, ())
    np.testing.assert_allclose(update["a"], 0.5 / 20 * 0.3 * 5, rtol=1e-9)  # κ is 2


def test_traces_accumulate_and_are_cut_where_an_episode_ends():
    trace = {"w": jnp.ones((2, 3))}
    trace = accumulate_trace(trace, {"w": 2 * jnp.ones((2, 3))}, 0.5)
    np.testing.assert_array_equal(trace["w"], 2.5)
    cut = cut_trace(trace, jnp.array([True, False]))
    np.testing.assert_array_equal(cut["w"], [[0] * 3, [2.5] * 3])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_envs": 0}, r"`num_envs` \(=0\)"),
        ({"trace_decay": 1.1}, r"`trace_decay` \(=1\.1\) must be in \[0, 1\]"),
        ({"discount": -1.0}, r"`discount` \(=-1\.0\) must be in \[0, 1\], or None"),
        ({"head_size": 1}, r"`head_size` \(=1\) must be at least 2: the norm of one value is 0"),
        ({"kappa": 0.0}, r"`kappa` \(=0\.0\) must be above 0"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        agent(Tape(), **options)


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("memory", "rtu", TypeError, r"`memory` \(='rtu'\) must be a recipe"),
        ("gradient", agents.BPTT(), TypeError, r"`gradient` \(=BPTT.*agents\.RTRL\(\) or"),
        ("optimizer", "sgd", ValueError, r"`optimizer` \(='sgd'\) must be one of adam, obgd"),
    ],
)
def test_names_in_place_of_choices_are_refused(unhooked, name, value, error, message):
    with pytest.raises(error, match=message):
        agent(Tape(), **{name: value})


def test_a_setting_of_obgd_is_told_where_adam_learns():
    with pytest.warns(UserWarning, match=r"`kappa` \(=5.0\) has no effect with `optimizer='adam'`"):
        agents.StreamingTD(env="trace_conditioning", memory=zoo.spec("mlp", hidden=2), kappa=5.0)


def test_the_discount_is_the_environments_own_where_none_is_given():
    settings = {"memory": MEMORY, "env": "trace_conditioning", "env_options": {"expected_isi": 20}}
    assert agents.StreamingTD(**settings).discount_factor == 0.95
    assert agents.StreamingTD(**settings, discount=0.5).discount_factor == 0.5
    assert agents.StreamingTD(memory=MEMORY, env="t_maze").discount_factor == 0.99


def test_an_environments_own_discount_is_checked():
    class Growing(Tape):
        discount_factor = 1.5

    with pytest.raises(
        ValueError, match=r"`discount_factor` \(=1.5\) of 'Growing' must be in \[0, 1"
    ):
        agents.StreamingTD(memory=MEMORY, env=Growing())
    agents.StreamingTD(memory=MEMORY, env=Growing(), discount=0.5)


def test_a_cut_trace_keeps_nothing_of_what_is_not_finite():
    trace = {"w": jnp.array([[jnp.nan, jnp.inf], [1.0, 2.0]])}
    np.testing.assert_array_equal(cut_trace(trace, jnp.array([True, False]))["w"], [[0, 0], [1, 2]])


def test_steps_are_counted_whatever_the_parameters_are_kept_in():
    """In bfloat16 a count stops at 256, and the mean square would stay too small for ever."""
    optimizer = obgd(adaptive=True)
    parameters = jnp.zeros(2, jnp.bfloat16)
    advance = jax.jit(lambda s: optimizer.update(jnp.ones((1, 2)), jnp.ones(1), s)[1])
    state = jax.lax.fori_loop(0, 300, lambda _, s: advance(s), advance(optimizer.init(parameters)))
    assert state.count == 301


def test_more_steps_than_an_integer_counts_are_adapted_to():
    optimizer, z, steps = obgd(adaptive=True), np.array([1.0, 0.01]), 2**31 - 1
    state = ObGDState(jnp.square(z), jnp.int32(steps))
    updates, state = jax.jit(optimizer.update)(z, np.float64(1), state)
    np.testing.assert_allclose(updates, [0.25, 0.25], rtol=1e-5)
    assert state.count == steps


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"learning_rate": -1.0}, r"\(=-1.0\) must be above 0"),
        ({"kappa": float("nan")}, r"\(=nan\) must be a number, finite"),
        ({"moment_decay": 1.0}, r"\(=1.0\) must be at least 0 and below 1"),
    ],
)
def test_obgd_names_what_it_cannot_take(options, rule, unhooked):
    with pytest.raises(ValueError, match=f"`{next(iter(options))}` {rule}"):
        obgd(**options, adaptive=True)


def test_an_optimizer_that_reads_parameters_gets_them():
    optimizer, parameters = along_traces(optax.adamw(0.1, weight_decay=0.5)), jnp.array([1.0, 2.0])

    def after(parameters):
        trace, state = jnp.zeros(2), optimizer.init(parameters)
        return optimizer.update(trace, jnp.ones(()), state, parameters)[0]

    np.testing.assert_allclose(jax.jit(after)(parameters), [-0.05, -0.1], rtol=1e-12)
