"""Exact policy iteration: the numbers of the games of "The Act of Remembering"."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces
from gymnax.environments.environment import EnvState

import agents
from tests.agents.tasks import Tape
from tests.cases import slow_but

# Where 2,500 iterations with a step of .01 end, computed apart from this code.
ENDS = [
    ("recall", "B0", 1 / 27),
    ("recall", "K1", 0.25),
    ("recall", "B1", 0.25),
    ("recall", "O1", 0.25),
    ("recall", "K2", 1.0),
    ("recall", "B2", 1.0),
    ("recall", "O2", 1.0),
    ("recall", "OA1", 1.0),
    ("recall_variation", "B0", 0.0),
    ("recall_variation", "K1", 1.5625),
    ("recall_variation", "O1", 1.5625),
    ("recall_variation", "OA1", 1.5625),
    ("recall_variation", "OA2", 3.0),
    ("recall_variation", "B1", 3.0),
    ("recall_variation", "B3", 3.0),
    ("recall_four", "B0", 0.5625),
    ("recall_four", "K2", 0.75),
    ("recall_four", "O1", 0.75),
    ("recall_four", "B1", 0.75),
    ("recall_four", "B2", 0.75),
    ("recall_four", "B5", 0.75),
    ("recall_four", "OA1", 1.0),
    ("recall_four", "OA2", 1.0),
]


def ideal(name, memory, **options):
    return agents.IdealPolicyIteration(env=name, env_options={"external_memory": memory}, **options)


@pytest.mark.parametrize(("name", "memory", "end"), slow_but([ENDS[2], ENDS[18]], ENDS))
def test_it_ends_where_the_paper_says(name, memory, end):
    agent = ideal(name, memory)

    @jax.jit
    def run(state):
        return jax.lax.scan(lambda s, _: agent.iterate(s), state, length=2500)

    _, report = run(agent.init(key=jax.random.key(0)))
    returns = np.asarray(report.episodes["return"])
    start = {"recall": 1 / 27, "recall_variation": -26.75, "recall_four": -0.640625}[name]
    np.testing.assert_allclose(returns[0], start, rtol=1e-5)
    np.testing.assert_allclose(returns[-1], end, atol=2e-3)


def test_the_return_is_not_discounted():
    agent = ideal("recall_variation", "B0", discount=0.5)
    _, report = jax.jit(agent.iterate)(agent.init(key=jax.random.key(0)))
    np.testing.assert_allclose(report.episodes["return"], -26.75, rtol=1e-5)


def test_the_first_values_with_one_bit_are_those_worked_by_hand():
    agent = ideal("recall_four", "B1")
    q, _, _ = jax.jit(agent.values)(agent.init(key=jax.random.key(0)).learner)
    expected = [[-0.9167, 0.2917, -1.4583, -0.4792], [-1.25, 0.5, -2.375, 0.5625]]
    for write in range(2):  # an action is the game's plus 4 times the write
        np.testing.assert_allclose(q[:, 4 * write : 4 * write + 4], expected, atol=1e-4)


@pytest.mark.slow
def test_values_are_those_of_all_sequences_played():
    """Every sequence of actions, weighed by its probability under a random policy."""
    agent = ideal("recall_variation", "OA1", discount=0.9)
    env, params = agent.environment
    rows, count = agent.init(key=jax.random.key(0)).learner.shape
    policy = np.random.default_rng(0).dirichlet(np.ones(count), rows)
    q, v, visits = jax.jit(agent.values)(jnp.asarray(policy))

    step = jax.jit(lambda state, action: env.step(jax.random.key(0), state, action, params))
    row = lambda seen: int(np.ravel_multi_index(seen, env.observation_space(params).nvec))  # noqa: E731
    total = np.zeros((rows, count))
    weight = np.zeros(rows)
    worth = 0.0
    for actions in itertools.product(range(count), repeat=3):
        seen, state = env.reset(jax.random.key(0), params)
        met, chance = [], 1.0
        for action in actions:
            met.append(row(np.asarray(seen)))
            chance *= policy[met[-1], action]
            seen, state, reward, *_ = step(state, action)
        worth += chance * 0.9**2 * float(reward)
        for time, (seen_row, action) in enumerate(zip(met, actions, strict=True)):
            # A visit's chance is that of all sequences through it; its q needs the action taken.
            weight[seen_row] += chance
            total[seen_row, action] += (
                chance / policy[seen_row, action] * 0.9 ** (2 - time) * float(reward)
            )
    np.testing.assert_allclose(v[0], worth, rtol=1e-6)
    np.testing.assert_allclose(visits.sum(), 3, rtol=1e-6)
    met = weight > 0
    np.testing.assert_allclose(q[met], total[met] / weight[met, None], rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_seeds_side_by_side_do_the_same():
    agent = ideal("recall_four", "B5")

    @jax.jit
    @jax.vmap
    def run(key):
        return jax.lax.scan(lambda s, _: agent.iterate(s), agent.init(key=key), length=50)[1]

    # Batches of factorizations side by side would wait for each other for ever on two threads.
    returns = np.asarray(run(jax.random.split(jax.random.key(0), 3)).episodes["return"])
    np.testing.assert_array_equal(returns, returns[:1].repeat(3, 0))
    assert returns[0, -1] > returns[0, 0]


@pytest.mark.slow
def test_it_trains_from_the_command_line_and_can_be_played(tmp_path):
    from agents.cli import main

    words = "train --algorithm ideal_policy_iteration --env recall_four --steps 300 --progress none"
    options = "--env-options external_memory=OA1 --step-size 0.1 --evaluate-every 0"
    assert main([*words.split(), *options.split(), "--out", str(tmp_path / "run")]) == 0
    policy = agents.load_policy(tmp_path / "run")
    _, action = policy.act(policy.init_state(), jnp.array([0, 0, 0]), True)
    assert int(action) == 4, "the first action of the best sequence, and the push"


class RichStart(Tape):
    """Two steps: the first gives much for either action, the second 1 for action 0."""

    def observation_space(self, params):
        return spaces.Discrete(3)

    def action_space(self, params):
        return spaces.Discrete(2)

    def reset_env(self, key, params):
        return jnp.int32(0), EnvState(jnp.int32(0))

    def step_env(self, key, state, action, params):
        time = state.time + 1
        reward = jnp.where(time == 1, jnp.float32(1e6), jnp.float32(1) - action)
        return time, EnvState(time), reward, time == 2, {}


def test_a_large_value_elsewhere_makes_no_actions_equal():
    agent = agents.IdealPolicyIteration(env=RichStart(), step_size=1.0)
    state, _ = jax.jit(agent.iterate)(agent.init(key=jax.random.key(0)))
    np.testing.assert_array_equal(state.learner[:2], [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"env": "gravity"}, r"`env` \(Gravity\) must be deterministic: its step is random"),
        ({"env": "t_maze"}, r"`env` \(.*\) must be deterministic: its reset is random"),
        ({"env": "recall", "step_size": 0.0}, r"`step_size` \(=0\.0\) must be above 0"),
        ({"env": "recall", "discount": 2.0}, r"`discount` \(=2\.0\) must be in \[0, 1\]"),
    ],
)
def test_settings_that_break_a_rule(options, message):
    with pytest.raises(ValueError, match=message):
        agents.IdealPolicyIteration(**options)
