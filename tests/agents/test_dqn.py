"""DQN's loss against a loop, its samples, its schedule, and bad settings."""

import dataclasses
from functools import cache
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import agents
import zoo
from agents.acting import ByValues
from agents.networks import Inputs

# The limit truncates some episodes, a turn at the junction terminates others.
TASK = {"env": "t_maze", "env_options": {"length": 1, "max_steps_in_episode": 4}}
SMALL = {
    "num_envs": 2,
    "rollout_length": 8,
    "updates": 1,
    "replay_steps": 64,
    "warm_up": 32,
    "batch_steps": 36,
    "encoder_size": 5,
    "head_size": 6,
    "previous_action": True,
    "previous_reward": True,
}
SAMPLINGS = {
    "tape": {},
    "zero": {"segment": 3},
    "stored": {"segment": 3},
    "burn_in": {"segment": 3, "burn_in": 2},
}


def small(sampling="tape", **options):
    drawn = {"sampling": sampling, **SAMPLINGS[sampling]}
    return agents.DQN(**({"memory": zoo.spec("gru", hidden=4)} | TASK | SMALL | drawn | options))


@cache
def after(dqn, count):
    """The state after some iterations, and the last one's report."""
    if count == 0:
        return jax.jit(lambda: dqn.init(key=jax.random.key(0)))(), None
    return program(dqn)(after(dqn, count - 1)[0])


@cache
def program(dqn):
    return jax.jit(dqn.iterate)


def played(*, with_states):
    """A learner and a replay of four iterations; how they are sampled is another matter."""
    options = {"sampling": "stored", "warm_up": 1000} if with_states else {}
    return after(small(**options), 4)


def values_in_a_loop(network, rows, start, burn_in):
    """The values after each row, the network stepping; nothing is learned from the burn-in."""
    step = jax.vmap(network.step)

    before, along = (
        jax.tree.map(lambda x, s=s: x[s], rows.inputs)
        for s in (slice(None, burn_in), slice(burn_in, None))
    )
    state, _ = jax.lax.scan(step, start, before)
    return jax.lax.scan(step, jax.lax.stop_gradient(state), along)[1]


def targets_by_hand(values, target, rows, mask, discount):
    """What each step's value is learned towards; 0 where nothing is learned."""
    wanted = np.zeros(mask.shape)
    for t, sequence in zip(*np.nonzero(mask), strict=True):
        wanted[t, sequence] = rows.reward[t, sequence]
        if not rows.terminated[t, sequence]:
            # What comes next is this episode's: it was reached by this action.
            assert not rows.inputs.begin[t + 1, sequence]
            assert rows.inputs.action[t + 1, sequence] == rows.action[t, sequence]
            assert rows.inputs.reward[t + 1, sequence] == rows.reward[t, sequence]
            best = np.argmax(values[t + 1, sequence])
            wanted[t, sequence] += discount * target[t + 1, sequence, best]
    return wanted


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampling", ["tape", *(pytest.param(s, marks=pytest.mark.slow) for s in list(SAMPLINGS)[1:])]
)
def test_the_loss_and_its_gradient_are_those_of_a_loop(sampling):
    dqn = small(sampling=sampling)
    state, _ = played(with_states=sampling in ("stored", "burn_in"))
    draw = jax.jit(dqn._drawn)
    draws = (draw(state.replay, jax.random.key(seed)) for seed in range(50))
    # One with an episode that was terminated.
    sample = next(s for s in draws if (s.rows.terminated[-1 - s.mask.shape[0] : -1] & s.mask).any())
    rows, mask = sample.rows, np.asarray(sample.mask)
    burn_in = 2 if sampling == "burn_in" else 0
    sequences = rows.reward.shape[1]
    # Values that differ enough for both sides of Huber's loss.
    wide = lambda n: eqx.tree_at(lambda n: n.head.advantage.w, n, 200 * n.head.advantage.w)  # noqa: E731
    network, target = wide(state.learner.network), wide(dqn.network(key=jax.random.key(9)))
    start = jnp.zeros((sequences, 4)) if rows.state is None else rows.state[0]
    assert (rows.state is None) == (sampling in ("tape", "zero"))

    along = jax.jit(lambda network: values_in_a_loop(network, rows, start, burn_in))
    later = jax.tree.map(lambda x: np.asarray(x[burn_in:]), dataclasses.replace(rows, state=None))
    values = np.asarray(along(network))
    wanted = targets_by_hand(values, np.asarray(along(target)), later, mask, dqn.discount)

    @jax.jit
    def loss_by_hand(network):
        values = values_in_a_loop(network, rows, start, burn_in)
        taken = (values * jax.nn.one_hot(later.action, 4)).sum(-1)[:-1]
        error = jnp.abs(taken - wanted)
        huber = jnp.where(error < 1, 0.5 * error**2, error - 0.5)
        return jnp.sum(mask * huber) / mask.sum(), error

    (expected, error), slope = jax.value_and_grad(loss_by_hand, has_aux=True)(network)
    assert (error[mask] < 1).any() and (error[mask] > 1).any()
    assert mask.sum() == 36 or (sampling != "tape" and 12 < mask.sum() < 36)
    truncated = ~later.terminated[:-1] & later.inputs.begin[1:]
    assert not truncated[mask].any()
    if sampling == "tape":
        assert truncated[~mask].any(), "no episode was truncated"

    ours = lambda n: dqn._loss(n, dqn._along(target, sample), sample)[0]  # noqa: E731
    found, gradient = jax.jit(jax.value_and_grad(ours))(network)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(slope), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_several_tapes_make_up_a_sample_of_the_same_size():
    replay = played(with_states=False)[0].replay
    sample = jax.jit(small(tapes=3)._drawn)(replay, jax.random.key(3))
    assert sample.rows.reward.shape == (12 + 3 + 1, 3) and sample.mask.shape == (12 + 3, 3)
    np.testing.assert_array_equal(sample.mask.sum(axis=0), 12)
    assert sample.rows.inputs.begin[0].all(), "a tape starts with a whole episode"


@pytest.mark.slow
def test_states_are_stored_as_they_were_before_the_step():
    """While nothing is learned, each stored state follows from the one before."""
    state, report = played(with_states=True)
    sample = jax.jit(small(sampling="stored")._drawn)(state.replay, jax.random.key(0))
    rows, mask = sample.rows, np.asarray(sample.mask)
    following, _ = jax.jit(jax.vmap(jax.vmap(state.learner.network.step)))(rows.state, rows.inputs)
    both = mask[:-1] & mask[1:]
    assert both.sum() > 4 and float(jnp.std(rows.state)) > 0.01
    np.testing.assert_allclose(following[:-2][both], rows.state[1:-1][both], rtol=1e-12)
    assert jnp.isnan(report.metrics["loss"]) and not report.learned, "nothing is learned yet"


def test_an_update_moves_the_network_and_the_target_after_it():
    dqn = small()
    (before, _), (state, report) = after(dqn, 1), after(dqn, 2)  # of 16 steps, of 32 to wait
    leaves = lambda s: map(jax.tree.leaves, jax.device_get((s.learner.network, s.learner.target)))  # noqa: E731
    for old, follows, new, target in zip(*leaves(before), *leaves(state), strict=True):
        np.testing.assert_array_equal(old, follows, "learning began too early")
        np.testing.assert_allclose(target, 0.995 * old + 0.005 * new, rtol=1e-12)
    assert report.metrics["loss"] > 0 and report.learned


def test_the_share_of_random_actions_falls():
    dqn = small(warm_up=10, epsilon=0.5, epsilon_end=0.1, epsilon_steps=100)
    steps = jnp.array([0, 9, 10, 60, 110, 1000], jnp.int32)
    shares = jax.vmap(dqn.share)(steps)
    np.testing.assert_allclose(shares, [1, 1, 0.5, 0.3, 0.1, 0.1], rtol=1e-6)


@pytest.mark.slow
def test_a_share_of_the_actions_is_random():
    values = jnp.tile(jnp.array([0.0, 2.0, 1.0, 0.0]), (4000, 1))
    network = SimpleNamespace(step=lambda state, inputs: (state, inputs.observation))
    behavior = ByValues(network, jnp.float32(0.25))
    none = jnp.zeros(4000)
    inputs = Inputs(values, none.astype(jnp.int32), none, none > 0)
    _, decision = jax.jit(lambda key: behavior(none, inputs, key))(jax.random.key(0))
    shares = np.bincount(decision.action, minlength=4) / 4000
    np.testing.assert_allclose(shares, [0.0625, 0.8125, 0.0625, 0.0625], atol=0.015)
    np.testing.assert_array_equal(decision.memo[0], np.asarray(values[0])[decision.action])
    assert (decision.memo[1] == 2).all() and (behavior.at_end(none, inputs) == 2).all()
    _, decision = behavior(none, inputs, None)
    assert (decision.action == 1).all()


def test_a_dueling_head_has_the_mean_of_its_values_from_the_state():
    dqn = small(dueling=True)

    @jax.jit
    def run(key):
        head, y = dqn.network(key=key).head, jnp.arange(4.0)
        return head(y), head.state_value(head.hidden(y))[0]

    values, of_state = jax.device_get(run(jax.random.key(0)))
    np.testing.assert_allclose(values.mean(), of_state, rtol=1e-12)
    assert np.std(values) > 1e-5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replay_steps": 31}, r"`replay_steps` \(=31\) must be at least twice .* \(=16\)"),
        (
            {"sampling": "zero", "segment": 5},
            r"`batch_steps` \(=36\) must be divisible by `segment` \(=5\)",
        ),
        ({"tapes": 5}, r"`batch_steps` \(=36\) must be divisible by `tapes` \(=5\)"),
        ({"updates": 0}, r"`updates` \(=0\) must be a whole number of at least 1"),
        ({"epsilon": 1.5}, r"`epsilon` \(=1.5\) must be in \[0, 1\]"),
        ({"head_size": 1}, r"`head_size` \(=1\) must be at least 2: the norm of one value is 0"),
        ({"target_kept": 2.0}, r"`target_kept` \(=2.0\) must be in \[0, 1\]"),
        (
            {"env": "PositionOnlyPendulumEasy", "env_options": {}, "replay_steps": 1000},
            r"`env` \(=PositionOnlyPendulumEasy\) must have Discrete actions",
        ),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        small(**options)


@pytest.mark.slow
def test_nothing_is_learned_before_an_episode_has_ended():
    """Of whatever a tape gives before, an entropy coefficient would learn from zeros."""
    sac = agents.SAC(
        env="PositionOnlyPendulumEasy", memory=zoo.spec("mlp", hidden=2), num_envs=2,
        rollout_length=8, warm_up=0, updates=2, batch_steps=20, replay_steps=1000,
        encoder_size=2, head_size=2,
    )  # fmt: skip
    start = jax.jit(lambda: sac.init(key=jax.random.key(0)))()
    state, report = jax.jit(sac.iterate)(start)
    jax.tree.map(
        np.testing.assert_array_equal,
        eqx.filter(state.learner, eqx.is_array),
        eqx.filter(start.learner, eqx.is_array),
    )
    assert all(map(np.isnan, report.metrics.values())) and not report.learned


def test_steps_are_counted_up_to_what_an_integer_holds():
    dqn = small()
    counts = [int(dqn.steps_before(jnp.int32(i))) for i in (3, 2**27, 2**31 - 1)]
    size = dqn.steps_per_iteration
    assert counts[0] == 3 * size and counts[1] == counts[2] > 2**31 - 3 * size


def test_a_replay_without_room_for_an_episode_is_told():
    """Whether episodes end before the limit nobody knows, so that it is no error."""
    with pytest.warns(UserWarning, match=r"`replay_steps` \(=64\) keep 32 steps .* up to 155"):
        small(env="RepeatPreviousHard", env_options={})
    with pytest.warns(UserWarning, match=r"keep 311 steps .* of 155: .* From 624 steps on one al"):
        small(env="RepeatPreviousHard", env_options={}, replay_steps=623)
    small(env="RepeatPreviousHard", env_options={}, replay_steps=624)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"segment": 7}, r"`segment` \(=7\) has no effect with `sampling='tape'`"),
        (
            {"head_layers": 0, "head_size": 7},
            r"`head_size` \(=7\) has no effect with `head_layers=0`",
        ),
        ({"burn_in": 7}, r"`burn_in` \(=7\) has no effect with `sampling='tape'`"),
        ({"sampling": "zero", "tapes": 4}, r"`tapes` \(=4\) has no effect with `sampling='zero'`"),
        (
            {"sampling": "stored", "burn_in": 7},
            r"`burn_in` \(=7\) has no effect with `sampling='st",
        ),
    ],
)
def test_what_another_way_of_drawing_would_need_is_told(options, told):
    with pytest.warns(UserWarning, match=told):
        small(**options)
