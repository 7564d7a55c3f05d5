"""The tabular learners: their updates by hand, and what they need."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces

import agents
from agents import envs
from agents.acting.tables import table_index, table_rows
from tests.agents.tasks import Chain, Tape

ALPHA, GAMMA = 0.3, 0.9


def chain_by_hand(steps, trace_decay, limit, initial):
    """TD(λ) with replacing traces, as the textbook has it."""
    value, trace, cell = np.full(6, initial), np.zeros(6), 0
    for _ in range(steps):
        reward, terminated = float(cell == 4), cell == 4
        truncated = cell + 1 == limit
        following = 0.0 if terminated else value[cell + 1]
        error = reward + GAMMA * following - value[cell]
        trace[cell] = 1
        value += ALPHA * error * trace
        trace *= GAMMA * trace_decay
        cell += 1
        if terminated or truncated:
            cell, trace = 0, np.zeros(6)
    return value


def trained(env, iterations=1, **options):
    agent = agents.Tabular(env=env, **options)
    state = jax.jit(lambda: agent.init(key=jax.random.key(0)))()
    iterate = jax.jit(agent.iterate)
    for _ in range(iterations):
        state, report = iterate(state)
    return np.asarray(state.learner), report


@pytest.mark.parametrize(
    ("rule", "trace_decay", "limit"),
    [("sarsa", 0.8, 3), ("sarsa", 0.0, 100), ("q_learning", 0.8, 100), ("q_learning", 1.0, 5)],
)
def test_updates_by_hand(rule, trace_decay, limit):
    """A chain with one action: Q is the value; a limit of 3 truncates, and is bootstrapped over.

    Values begin at 0.5, so that there is something to learn where no reward is reached.
    """
    env = Chain()
    table, report = trained(
        (env, env.default_params.replace(max_steps_in_episode=limit)),
        iterations=4,
        rollout_length=15,
        rule=rule,
        learning_rate=ALPHA,
        discount=GAMMA,
        trace_decay=trace_decay,
        initial_value=0.5,
    )
    expected = chain_by_hand(60, trace_decay, limit, 0.5)
    np.testing.assert_allclose(table[:, 0], expected, atol=1e-6)
    assert report.episodes["length"] == min(limit, 5)
    assert report.episodes["return"] == float(limit >= 5)
    assert report.episodes["episodes"] == 15 // min(limit, 5)


def test_a_truncation_is_bootstrapped_over_and_a_termination_is_not():
    env, options = Chain(), {"learning_rate": 1.0, "discount": 0.5, "initial_value": 8.0}
    for limit in (1, 100):
        params = env.default_params.replace(max_steps_in_episode=limit)
        table, _ = trained((env, params), rollout_length=1, **options)
        # From 0 to 1, whose value is the initial one: r + γ 8 = 4, be it cut there or not.
        assert table[0, 0] == 4 and table[1, 0] == 8
    table, _ = trained(env, rollout_length=5, **options)
    assert table[4, 0] == 1, "the last cell is left for good"


@pytest.mark.slow
def test_an_episode_begins_with_an_action_for_its_first_observation():
    agent = agents.Tabular(
        env="t_maze",
        env_options={"length": 1, "max_steps_in_episode": 4},
        epsilon=0.0,
        rollout_length=1,
    )
    state = agent.init(key=jax.random.key(0))
    # In every row another action is the best, by so much that one step does not change it.
    table = 100.0 * jax.nn.one_hot(jnp.array([1, 2, 0, 0]), 4, dtype=jnp.float32)
    assert table.shape == state.learner.shape
    state = eqx.tree_at(lambda s: s.learner, state, table)
    iterate, met = jax.jit(agent.iterate), set()
    for _ in range(12):
        state = eqx.tree_at(lambda s: s.learner, iterate(state)[0], table)
        now = state.actors
        assert int(now.action[0]) == int(jnp.argmax(table[now.row[0]]))
        met.add((int(now.row[0]), float(now.episode_length[0]) == 0))
    assert {flag for _, flag in met} == {True, False} and len(met) > 2


class Bandit(Tape):
    """One observation, two actions: the second is rewarded, the first is not."""

    def observation_space(self, params):
        return spaces.Discrete(1)

    def action_space(self, params):
        return spaces.Discrete(2)

    @staticmethod
    def observation(time):
        return jnp.int32(0)

    def step_env(self, key, state, action, params):
        observation, state, _, ended, info = super().step_env(key, state, action, params)
        return observation, state, action.astype(jnp.float32), ended, info


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(("rule", "most"), [("q_learning", 1), ("sarsa", 2)])
def test_q_learning_chooses_after_it_has_learned(rule, most):
    """All is worth 1 at first, and what was tried is worth what it gave: an arm without a reward is
    tried once. Sarsa chooses before it learns, so it may try it once more."""
    agent = agents.Tabular(
        env=Bandit(length=100),
        rule=rule,
        epsilon=0.0,
        initial_value=1.0,
        learning_rate=1.0,
        discount=0.0,
        rollout_length=10,
    )

    def missed(key):
        start, key = jax.random.split(key)
        state, _ = agent.iterate(agent.init(key=start))
        return 10 - state.actors.episode_return[0]

    missed = jax.jit(jax.vmap(missed))(jax.random.split(jax.random.key(0), 100))
    assert missed.max() == most


def test_q_learning_finds_the_optimal_values():
    """Without pull, the cell is the whole state and nothing is random."""
    options = {"rows": 3, "columns": 3, "pull": 0.0, "walls": (), "max_steps_in_episode": 50}
    table, _ = trained(
        "gravity",
        env_options=options,
        rollout_length=30_000,
        rule="q_learning",
        learning_rate=0.5,
        discount=GAMMA,
        trace_decay=0.7,
        epsilon=0.8,
    )
    env, _ = envs.make("gravity", **options)
    for row, column, action in itertools.product(range(3), range(3), range(4)):
        if (row, column) == env.cookie:
            continue
        step = ((-1, 0), (0, 1), (1, 0), (0, -1))[action]
        to = np.clip((row + step[0], column + step[1]), 0, 2)
        np.testing.assert_allclose(table[3 * row + column, action], GAMMA ** to.sum(), atol=2e-3)


@pytest.mark.slow
def test_the_policy_is_greedy_without_a_key_and_explores_with_one():
    agent = agents.Tabular(env="gravity", epsilon=0.5)
    table = jnp.zeros((15, 4)).at[:, 2].set(1.0).astype(jnp.float32)
    policy = agent.policy(table)
    act = lambda key: policy.act(policy.init_state(), jnp.int32(7), True, key=key)[1]  # noqa: E731
    assert int(act(None)) == 2
    drawn = np.asarray(jax.vmap(act)(jax.random.split(jax.random.key(0), 400)))
    np.testing.assert_allclose((drawn == 2).mean(), 0.5 + 0.5 / 4, atol=0.08)
    assert set(drawn) == {0, 1, 2, 3}


@pytest.mark.parametrize("space", [spaces.Discrete(5), envs.MultiDiscrete((3, 2, 4))])
def test_every_observation_has_its_row(space):
    counts = (space.n,) if isinstance(space, spaces.Discrete) else space.nvec
    elements = np.array(list(itertools.product(*map(range, counts))), np.int32)
    if len(counts) == 1:
        elements = elements[:, 0]
    rows = jax.vmap(lambda x: table_index(space, x))(elements)
    np.testing.assert_array_equal(rows, np.arange(table_rows(space)))


@pytest.mark.parametrize(
    ("error", "name", "options", "message"),
    [
        (
            TypeError,
            "CartPole-v1",
            {},
            r"`env` must have Discrete or MultiDiscrete observations",
        ),
        (TypeError, "Pendulum-v1", {}, r"`env` must have Discrete actions, but they are Box"),
        (ValueError, "MemoryS7", {}, r"`env` has \d+ observations times 7 actions, which must be"),
        (ValueError, "gravity", {"rollout_length": 0}, r"`rollout_length` \(=0\) must be a whole"),
        (ValueError, "gravity", {"learning_rate": 0.0}, r"`learning_rate` \(=0\.0\) must be above"),
        (ValueError, "gravity", {"discount": 1.1}, r"`discount` \(=1\.1\) must be in \[0, 1\]"),
        (ValueError, "gravity", {"trace_decay": -1.0}, r"`trace_decay` \(=-1\.0\) must be in"),
        (ValueError, "gravity", {"epsilon": 2.0}, r"`epsilon` \(=2\.0\) must be in \[0, 1\]"),
    ],
)
def test_settings_that_break_a_rule(error, name, options, message):
    with pytest.raises(error, match=message):
        agents.Tabular(env=name, **options)


def true_online_by_hand(cells, rewards, ends, trace_decay):
    """The online λ-return algorithm with one action, from its definition: at every step all earlier
    updates are made again with the returns known by then, each cut at the present.
    """
    value = np.full(6, 0.5)
    begin = 0
    while begin < len(cells):
        end = next((t for t in range(begin, len(cells)) if ends[t]), len(cells) - 1)
        before = value.copy()
        seen = []  # the values with which each step was bootstrapped from
        for horizon in range(begin, end + 1):
            following = 0.0 if cells[horizon] == 4 else value[cells[horizon] + 1]
            seen.append(following)
            again = before.copy()
            for t in range(begin, horizon + 1):
                # The λ-return of step t cut at the horizon, with the values as they were then.
                steps = horizon - t + 1
                returns = [
                    sum(GAMMA**i * rewards[t + i] for i in range(n))
                    + GAMMA**n * seen[t - begin + n - 1]
                    for n in range(1, steps + 1)
                ]
                target = (1 - trace_decay) * sum(
                    trace_decay ** (n - 1) * returns[n - 1] for n in range(1, steps)
                ) + trace_decay ** (steps - 1) * returns[-1]
                again[cells[t]] += ALPHA * (target - again[cells[t]])
            value = again
        begin = end + 1
    return value


@pytest.mark.parametrize("limit", [3, 100])
def test_true_online_sarsa_is_the_online_lambda_return_algorithm(limit):
    env = Chain()
    table, _ = trained(
        (env, env.default_params.replace(max_steps_in_episode=limit)),
        iterations=2,
        rollout_length=11,
        traces="true_online",
        learning_rate=ALPHA,
        discount=GAMMA,
        trace_decay=0.8,
        initial_value=0.5,
    )
    length = min(limit, 5)
    cells = [t % length for t in range(22)]
    rewards = [float(cell == 4) for cell in cells]
    ends = [cell == length - 1 for cell in cells]
    expected = true_online_by_hand(cells, rewards, ends, 0.8)
    np.testing.assert_allclose(table[:, 0], expected, atol=1e-6)


def test_true_online_traces_are_of_sarsa():
    with pytest.raises(ValueError, match=r"`traces` \(='true_online'\) needs rule 'sarsa'"):
        agents.Tabular(env="gravity", traces="true_online", rule="q_learning")


class Changing(Chain):
    """What its first observation is, or what its steps return, is changed."""

    def __init__(self, change=lambda *answer: answer, seen=jnp.int32):
        super().__init__()
        self.change, self.seen = change, seen

    def reset_env(self, key, params):
        observation, state = super().reset_env(key, params)
        return self.seen(observation), state

    def step_env(self, key, state, action, params):
        return self.change(*super().step_env(key, state, action, params))


class Elsewhere(Changing):
    """The same, as an environment whose step is its own."""

    def step(self, key, state, action, params=None):
        return self.change(*super().step(key, state, action, params))

    def step_env(self, key, state, action, params):
        return Chain.step_env(self, key, state, action, params)


@pytest.mark.parametrize("learner", [agents.Tabular, agents.IdealPolicyIteration])
@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Changing(lambda o, s, r, d, i: (o, s, r, d)), "`step_env` returns 4 values, and not"),
        (
            Changing(lambda o, *rest: (jnp.stack([o, o]), *rest), lambda o: jnp.stack([o, o])),
            r"`reset` returns observation of shape \(2,\); `observation_space` says shape \(\)",
        ),
        (
            Changing(lambda o, *rest: (jnp.stack([o, o]), *rest)),
            r"`step_env` returns observation as int32\[2\], `reset_env` as int32\[\]",
        ),
        (
            Changing(lambda o, s, r, d, i: (o, s, r, d * 1.0, i)),
            r"`step` returns terminated as float32\[\], not a boolean",
        ),
        (
            Changing(lambda o, s, r, d, i: (o, s, jnp.stack([r, r]), d, i)),
            r"`step` returns reward as float32\[2\], not one number",
        ),
        (Elsewhere(lambda *answer: answer[:4]), "`step` returns 4 values, and not"),
        (
            Elsewhere(lambda o, s, *rest: (o, s.replace(time=s.time * 1.0), *rest)),
            r"`step` returns state\.time as float32\[\], `reset` as int32\[\]",
        ),
    ],
)
def test_an_environment_that_breaks_its_contract_is_named(learner, env, message, float32):
    with pytest.raises((ValueError, TypeError), match=rf"`env` \(=\w+\): {message}"):
        learner(env=env).init(key=jax.random.key(0))
