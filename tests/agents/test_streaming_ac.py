"""Actor-critic at every step: its updates by hand, and bad settings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces
from jax.flatten_util import ravel_pytree

import agents
import zoo
from agents.networks import Categorical
from agents.networks.layers import sparse_weights
from tests.agents.online import Online, obgd_by_hand, stream
from tests.agents.tasks import Square, Tape

STEPS, DISCOUNT, DECAY, ENTROPY = 13, 0.9, 0.7, 0.3


class Choices(Tape):
    """The tape, with two actions that do nothing."""

    def action_space(self, params):
        return spaces.Discrete(2)


def agent(env, **options):
    settings = {"discount": DISCOUNT, "trace_decay": DECAY, "entropy_coefficient": ENTROPY}
    sizes = {"head_size": 4, "sparsity": 0.5, "rollout_length": STEPS, "previous_reward": True}
    memory = zoo.spec("rtu", hidden=3, nonlinear=True)
    return agents.StreamingAC(env=env, **({"memory": memory} | settings | sizes | options))


class Scales:
    """Means and variances of everything seen, from all of it."""

    def __init__(self):
        self.seen = []

    def count(self, x):
        self.seen.append(np.asarray(x, float))

    def normalized(self, x):
        return (x - np.mean(self.seen, 0)) / np.sqrt(self.variance() + 1e-8)

    def scaled(self, x):
        return x / np.sqrt(self.variance() + 1e-8)

    def variance(self):
        # Of one sample there is no variance; what it is scaled by is still that of none.
        return np.var(self.seen, 0, ddof=1) if len(self.seen) > 1 else 1.0


def by_hand(ac, state, credit):
    """AC(λ) as its paper has it, but for truncations, with dense Jacobians and fixed actions."""
    preference = lambda policy, extra: (  # noqa: E731
        policy.log_prob(jnp.asarray(extra[0])) + ENTROPY * extra[1] * policy.entropy()
    )
    actor = Online(state.learner.actor, preference, credit)
    critic = Online(state.learner.critic, lambda value, _: value, credit)
    w_a, w_c = np.asarray(actor.start), np.asarray(critic.start)
    z_a, z_c = np.zeros_like(w_a), np.zeros_like(w_c)
    keys = jax.random.split(jax.random.split(state.key)[1], STEPS)
    observations, returns, discounted, errors = Scales(), Scales(), np.float32(0), []
    see = lambda inputs: type(inputs)(  # noqa: E731
        jnp.asarray(observations.normalized(inputs.observation)),
        inputs.action,
        inputs.reward,
        inputs.begin,
    )
    steps = zip(keys, *stream(ac.environment[0], STEPS), strict=True)
    for key, now, following, reward, terminated, truncated in steps:
        if now.begin:
            observations.count(now.observation)
        inputs = see(now)
        observations.count(following.observation)
        after = see(following)
        policy, value = actor.step(w_a, inputs), critic.step(w_c, inputs)
        action = Categorical(policy.logits[None]).sample(jax.random.split(key)[0])[0]
        discounted = np.float32(reward) + (
            np.float32(0) if now.begin else np.float32(DISCOUNT) * discounted
        )
        returns.count(discounted)
        next_value = 0.0 if terminated else float(critic.following(w_c, after))
        error = float(
            returns.scaled(float(np.float32(reward))) + DISCOUNT * next_value - float(value)
        )
        errors.append(error)
        z_c = DISCOUNT * DECAY * z_c + critic.gradient(w_c, inputs)
        extra = (int(action), float(np.sign(error)))
        z_a = DISCOUNT * DECAY * z_a + actor.gradient(w_a, inputs, extra)
        w_a = obgd_by_hand(w_a, z_a, error, ac.learning_rate, ac.actor_kappa)
        w_c = obgd_by_hand(w_c, z_c, error, ac.learning_rate, ac.critic_kappa)
        if terminated or truncated:
            z_a, z_c = np.zeros_like(z_a), np.zeros_like(z_c)
    return w_a, w_c, errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("length", "limit", "credit"), [(100, 5, None), (5, 100, None), (5, 5, 1), (100, 5, 2)]
)
def test_every_step_learns_what_the_loop_by_hand_does(length, limit, credit):
    """Over ends of all kinds; a truncation is bootstrapped over, and cuts the traces too."""
    gradient = agents.RTRL() if credit is None else agents.TBPTT(credit)
    ac = agent(Choices(length, limit), gradient=gradient)
    state = jax.jit(lambda: ac.init(key=jax.random.key(0)))()
    w_a, w_c, errors = by_hand(ac, state, credit)
    after, report = jax.jit(ac.iterate)(state)
    for expected, network, before in (
        (w_a, after.learner.actor, state.learner.actor),
        (w_c, after.learner.critic, state.learner.critic),
    ):
        np.testing.assert_allclose(ravel_pytree(network)[0], expected, rtol=1e-7, atol=1e-9)
        assert np.abs(ravel_pytree(before)[0] - expected).max() > 1e-3
    np.testing.assert_allclose(report.metrics["td_error"], np.abs(errors).mean(), rtol=1e-7)


@pytest.mark.slow
def test_gaussian_actions_and_several_environments_learn_too():
    ac = agents.StreamingAC(
        env="PositionOnlyPendulumEasy",
        memory=zoo.spec("rtu", hidden=4),
        num_envs=2,
        rollout_length=6,
        head_size=4,
        adaptive=True,
    )
    state, report = jax.jit(ac.iterate)(ac.init(key=jax.random.key(0)))
    assert all(np.isfinite(x) for x in report.metrics.values())
    assert float(jnp.abs(state.learner.actor.head.log_std).max()) > 0


def test_sparse_weights_have_their_share_of_zeros_in_every_row():
    w = np.asarray(sparse_weights(jax.random.key(0), 50, 40, sparsity=0.9))
    assert ((w != 0).sum(1) == 4).all()
    assert 0.8 * 40**-0.5 < np.abs(w).max() <= 40**-0.5
    assert len({tuple(row) for row in (w != 0)}) > 40, "the same places in all rows"
    few = sparse_weights(jax.random.key(0), 5, 3, sparsity=0.9)
    assert ((few != 0).sum(1) == 1).all(), "a unit that sees nothing"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rollout_length": 0}, r"`rollout_length` \(=0\)"),
        ({"sparsity": 1.5}, r"`sparsity` \(=1\.5\) must be in \[0, 1\]"),
        ({"actor_kappa": 0.0}, r"`actor_kappa` \(=0\.0\) must be above 0"),
        ({"entropy_coefficient": -1.0}, r"`entropy_coefficient` \(=-1\.0\) must be at least 0"),
        ({"head_size": 1}, r"`head_size` \(=1\) must be at least 2: the norm of one value is 0"),
        ({"head_layers": -1}, r"`head_layers` \(=-1\)"),
        ({"env": Square(4)}, r"`env` \(=Square\) must have actions of one axis"),
        ({"gradient": agents.RTRL(refresh="epoch")}, r"`gradient` .* must have refresh='never'"),
        ({"gradient": agents.RTRL(storage="bfloat16")}, r"`gradient` .* must have storage='full'"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        agent(**({"env": Choices()} | options))


def test_layers_without_a_width_and_a_width_without_layers_are_told():
    options = {"env": "t_maze", "memory": zoo.spec("mlp", hidden=2)}
    with pytest.warns(UserWarning, match=r"`head_layers` \(=3\) has no effect with `head_size=0`"):
        agents.StreamingAC(**options, head_size=0, head_layers=3)
    for kind in (agents.StreamingAC, agents.PQN):
        with pytest.warns(UserWarning, match=r"`head_size` \(=7\) has no effect with `head_lay"):
            kind(**options, head_size=7, head_layers=0)
