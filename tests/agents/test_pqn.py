"""λ-returns and PQN's iteration against loops by hand, and bad settings."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import agents
import zoo
from agents.learning.returns import gae, lambda_return, next_values
from tests.agents.by_hand import episodes, values
from tests.agents.tasks import Tape

SMALL = {
    "num_envs": 2,
    "rollout_length": 8,
    "minibatches": 1,
    "epochs": 1,
    "encoder_size": 0,
    "head_size": 6,
    "previous_action": True,
    "previous_reward": True,
}


def small(env="t_maze", **options):
    memory = zoo.spec("rtu", hidden=5)
    return agents.PQN(env=env, **({"memory": memory, "gradient": agents.RTRL(4)} | SMALL | options))


def returns_by_hand(reward, following, terminated, truncated, discount, trace_decay):
    """λ-returns, one environment, from the last step to the first."""
    found = np.zeros_like(reward)
    for t in reversed(range(len(reward))):
        last = t == len(reward) - 1 or terminated[t] or truncated[t]
        after = following[t] if last else found[t + 1]
        mixed = (1 - trace_decay) * following[t] + trace_decay * after
        found[t] = reward[t] + (0 if terminated[t] else discount * mixed)
    return found


@pytest.mark.parametrize("trace_decay", [0.0, 0.65, 1.0])
def test_lambda_returns_are_those_of_the_loop(trace_decay):
    rng = np.random.default_rng(0)
    reward, value, final = rng.normal(size=(3, 40, 5))
    terminated, truncated = rng.random((2, 40, 5)) < 0.15
    assert np.any(terminated & truncated)
    following = next_values(*map(jnp.asarray, (value, value[0], terminated | truncated, final)))
    ends = jnp.asarray(terminated), jnp.asarray(truncated)
    options = {"discount": 0.97, "trace_decay": trace_decay}
    got = lambda_return(jnp.asarray(reward), following, *ends, **options)
    for env in range(5):
        columns = (x[:, env] for x in (reward, np.asarray(following), terminated, truncated))
        expected = returns_by_hand(*columns, 0.97, trace_decay)
        np.testing.assert_allclose(got[:, env], expected, rtol=0, atol=1e-12)
    advantage = gae(
        jnp.asarray(reward),
        jnp.asarray(value),
        following,
        *ends,
        discount=0.97,
        gae_lambda=trace_decay,
    )
    np.testing.assert_allclose(got, advantage + value, rtol=0, atol=1e-12)


def test_a_lambda_return_by_hand():
    # γ = ½, λ = ¼: G₂ = 4 + ½·8 = 8, G₁ ends terminated, G₀ = 1 + ½ (¾·6 + ¼·2).
    got = lambda_return(
        jnp.array([1.0, 2.0, 4.0]),
        jnp.array([6.0, 100.0, 8.0]),
        jnp.array([False, True, False]),
        jnp.zeros(3, bool),
        discount=0.5,
        trace_decay=0.25,
    )
    np.testing.assert_allclose(got, [3.5, 2, 8], rtol=1e-15)


# How episodes of 4 steps end: by the environment, or by the time limit.
@pytest.mark.slow
@pytest.mark.parametrize(("length", "limit"), [(100, 4), (4, 100)])
def test_an_iteration_learns_towards_the_returns_by_hand(length, limit):
    """Everything is known: there is one action. The second rollout goes on from the first."""
    env = Tape(length, limit)
    pqn = small(env, rollout_length=6, gradient=agents.RTRL(3), learning_rate=1e-12)
    state, iterate = jax.jit(lambda: pqn.init(key=jax.random.key(0)))(), jax.jit(pqn.iterate)
    network = state.learner.network

    def step(state, inputs):
        state, value = network.step(state, inputs)
        return state, (None, value[0])

    whole = episodes(env, 12)
    shown = SimpleNamespace(step=step, init_state=network.init_state)
    value, following = values(shown, env, whole[0], lambda x: x)
    for number in range(2):
        state, report = iterate(state)
        part = slice(6 * number, 6 * number + 6)
        _, reward, terminated, truncated = (x[part] for x in whole)
        target = returns_by_hand(reward, following[part], terminated, truncated, 0.99, 0.65)
        expected = 0.5 * np.mean((value[part] - target) ** 2)
        np.testing.assert_allclose(report.metrics["loss"], expected, rtol=1e-6)
        assert report.metrics["value_error"] < 1e-12


@pytest.mark.slow
def test_the_three_gradients_are_one_from_the_beginning_of_an_episode():
    def network(gradient):
        pqn = small(env=Tape(20, 20), gradient=gradient)
        state = jax.jit(lambda: pqn.init(key=jax.random.key(0)))()
        return jax.jit(pqn.iterate)(state)[0].learner.network

    expected = network(agents.BPTT())
    for gradient in (agents.RTRL(2), agents.TBPTT(8)):
        found = network(gradient)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    pairs = zip(*map(jax.tree.leaves, (network(agents.TBPTT(2)), expected)), strict=True)
    assert max(float(jnp.abs(a - b).max()) for a, b in pairs) > 1e-7, "the test sees no difference"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minibatches": 3}, r"`minibatches` \(=3\) must divide the number of segments \(=4"),
        ({"encoder_size": 1}, r"`encoder_size` \(=1\) must be at least 2: the norm of one value"),
        ({"trace_decay": 1.5}, r"`trace_decay` \(=1.5\) must be in \[0, 1\]"),
        ({"epsilon_steps": 0}, r"`epsilon_steps` \(=0\) must be a whole number of at least 1"),
        ({"anneal_steps": 0}, r"`anneal_steps` \(=0\) must be a whole number of at least 1, or"),
        (
            {"epochs": 1000, "minibatches": 2, "anneal_steps": 2**31 - 1},
            r"`anneal_steps` \(=2147483647\) must be at most 2147483647 updates of the optimizer",
        ),
        ({"env": "Pendulum-v1"}, r"`env` \(=Pendulum-v1\) must have Discrete actions"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        small(**options)
