"""Action values at every step: their updates by hand, and bad settings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces
from jax.flatten_util import ravel_pytree

import agents
import zoo
from agents.networks.steppers import RecurrentStepper
from tests.agents.online import Online, obgd_by_hand, stream
from tests.agents.tasks import Tape

STEPS, DISCOUNT, DECAY = 13, 0.9, 0.7


class Choices(Tape):
    """The tape, with two actions that do nothing."""

    def action_space(self, params):
        return spaces.Discrete(2)


def agent(env, **options):
    settings = {"discount": DISCOUNT, "trace_decay": DECAY, "rollout_length": STEPS, "epsilon": 0.5}
    sizes = {"head_size": 4, "sparsity": 0.5, "previous_reward": True, "epsilon_end": 0.5}
    plain = {"normalize_observation": False, "normalize_reward": False}
    memory = zoo.spec("rtu", hidden=3, nonlinear=True)
    return agents.StreamingQ(env=env, **({"memory": memory} | settings | sizes | plain | options))


def taken(q, state):
    """The network before the last of some steps, and the actions that were taken."""

    @jax.jit
    def run(learner, actors, keys):
        def step(loop, key):
            learner, actors, transition, _ = q._step(*loop, jnp.int32(0), key)
            return (learner, actors), (learner.network, transition.action[0])

        return jax.lax.scan(step, (learner, actors), keys)[1]

    keys = jax.random.split(jax.random.split(state.key)[1], STEPS)
    networks, actions = run(state.learner, state.actors, keys)
    return jax.tree.map(lambda x: x[-2], networks), actions.tolist()


def by_hand(q, state, actions):
    """Q(λ) as Watkins has it, or Sarsa(λ), with dense Jacobians and the actions that were taken."""
    online = Online(state.learner.network, lambda values, action: values[action])
    w, z, cuts = np.asarray(online.start), np.zeros(online.start.shape), 0
    steps = list(zip(actions, *stream(q.environment[0], STEPS), strict=True))
    for t, (action, now, following, reward, terminated, truncated) in enumerate(steps):
        values = online.step(w, now)
        if q.rule == "q" and values[action] < values.max():
            z, cuts = np.zeros_like(z), cuts + 1
        z = DISCOUNT * DECAY * z + online.gradient(w, now, action)
        after = online.following(w, following)
        last = t + 1 == STEPS
        following_value = after.max() if q.rule == "q" or last else after[actions[t + 1]]
        if terminated:
            following_value = 0.0
        error = float(np.float32(reward) + DISCOUNT * following_value - values[action])
        w = obgd_by_hand(w, z, error, q.learning_rate, q.kappa) if not last else w
        if terminated or truncated:
            z = np.zeros_like(z)
    return w, cuts


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "length", "limit"), [("q", 100, 5), ("sarsa", 5, 100)])
def test_every_step_learns_what_the_loop_by_hand_does(rule, length, limit):
    """The action after the last step is not known, so that its update is left out of both."""
    q = agent(Choices(length, limit), rule=rule)
    state = jax.jit(lambda: q.init(key=jax.random.key(1)))()
    network, actions = taken(q, state)
    assert set(actions) == {0, 1}
    w, cuts = by_hand(q, state, actions)
    np.testing.assert_allclose(ravel_pytree(network)[0], w, rtol=1e-8, atol=1e-10)
    assert cuts > 0 or rule == "sarsa"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 1.5}, r"`epsilon` \(=1\.5\) must be in \[0, 1\]"),
        ({"kappa": 0.0}, r"`kappa` \(=0\.0\) must be above 0"),
        ({"epsilon_steps": 0}, r"`epsilon_steps` \(=0\)"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        agent(Choices(), **options)


def test_actions_have_to_be_discrete():
    with pytest.raises(ValueError, match="must have Discrete actions"):
        agent("PositionOnlyPendulumEasy")


@pytest.mark.slow
def test_its_policy_normalizes_what_it_sees_and_acts_on_caches():
    memory = zoo.spec("transformer", hidden=4, window=3)
    q = agent(Choices(4, 9), memory=memory, normalize_observation=True, epsilon=1.0)
    state, _ = jax.jit(lambda key: q.iterate(q.init(key=key)))(jax.random.key(0))
    policy = q.policy(state.learner)
    inputs = state.actors.acting.inputs()
    seen = policy.behavior.seen(inputs).observation
    np.testing.assert_allclose(seen, state.learner.scaling.scaled(inputs).observation, rtol=1e-6)
    assert not np.allclose(seen, inputs.observation)
    assert isinstance(policy.prepared().behavior.network, RecurrentStepper)
