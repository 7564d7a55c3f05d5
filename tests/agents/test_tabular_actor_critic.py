"""The tabular actor-critic: its update by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import agents


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def updated(agent, piece, preference, value):
    """The update from recorded steps."""
    later = value[piece["next"]]
    old_preference, old_value = preference.copy(), value.copy()
    for t in reversed(range(agent.unroll_length)):
        if piece["terminated"][t]:
            later = 0.0
        elif piece["truncated"][t]:
            later = piece["last"][t]
        later = piece["reward"][t] + agent.discount * later
        row, action = piece["row"][t], piece["action"][t]
        error = later - old_value[row]
        score = -softmax(old_preference[row].astype(np.float64))
        score[action] += 1
        preference[row] += agent.policy_rate * error * score
        value[row] += agent.value_rate * error
    return preference.astype(np.float32), value.astype(np.float32)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("n", [3, 1])
def test_an_iteration_is_the_update_by_hand(n):
    options = {"length": 1, "max_steps_in_episode": 4}
    agent = agents.TabularActorCritic(
        env="t_maze", env_options=options, unroll_length=n, updates=24 // n, value_rate=0.2
    )
    start = agent.init(key=jax.random.key(3))
    state, _ = jax.jit(agent.iterate)(start)
    # The same draws, one update at a time, to see what happened.
    _, steps_key = jax.random.split(start.key)
    tables, acting, record = start.learner, start.actors, []
    actor = agent.actor
    collect = jax.jit(lambda b, a, k: actor.collect(b, a, length=n, key=k))
    index = agent._behavior(tables).rows
    preference, value = tables.preference, tables.value
    for key in jax.random.split(steps_key, agent.updates):
        behavior = agent._behavior(type(tables)(*map(jnp.asarray, (preference, value))))
        acting, seen, _ = collect(behavior, acting, key)
        rows = np.asarray(seen.memo)[:, 0]
        # `last` is the value of the final observation: nonzero only where truncated.
        piece = {
            "row": rows,
            "action": np.asarray(seen.action)[:, 0],
            "reward": np.asarray(seen.reward)[:, 0],
            "terminated": np.asarray(seen.terminated)[:, 0],
            "truncated": np.asarray(seen.truncated)[:, 0],
            "last": np.asarray(seen.last)[:, 0],
            "next": int(index(acting.inputs())[0]),
        }
        record.append(piece)
        preference, value = updated(agent, piece, np.array(preference), np.array(value))
    np.testing.assert_allclose(state.learner.preference, preference, atol=1e-5)
    np.testing.assert_allclose(state.learner.value, value, atol=1e-5)
    ended = np.concatenate([p["truncated"] | p["terminated"] for p in record])
    assert 2 <= ended.sum() < 24 and any(p["truncated"].any() for p in record)


def test_rates_are_checked():
    with pytest.raises(ValueError, match=r"`policy_rate` \(=0\.0\) must be above 0"):
        agents.TabularActorCritic(env="gravity", policy_rate=0.0)
    with pytest.raises(TypeError, match=r"`env` must have Discrete actions, but they are Box"):
        agents.TabularActorCritic(env="Pendulum-v1")
    with pytest.raises(ValueError, match=r"`unroll_length` \(=0\) must be a whole"):
        agents.TabularActorCritic(env="gravity", unroll_length=0)
