"""The three-state POMDP and the cycle: what can be predicted, exactly and by simulation."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from tests.envs.episodes import EPISODES, constantly, play, returns, uniformly

# The three-state POMDP.

THIRD = 2


def shares(policy, steps):
    """Expected returns where predictions are scored in the third state, and where they all are.

    `policy[previous, place]` is the prediction. By the distribution of (previous, place).
    """
    mass = np.zeros((3, 3))
    mass[0, 0] = mass[1, 1] = 1 / 2
    third = everywhere = 0.0
    for _ in range(steps):
        after = np.zeros((3, 3))
        for previous, place in itertools.product(range(3), repeat=2):
            if place == THIRD:
                to = np.eye(3)[previous]
            else:
                to = np.full(3, 1 / 3)
            right = mass[previous, place] * to[policy[previous, place]]
            everywhere += right / steps
            third += 4 * right / steps * (place == THIRD)
            after[place] += mass[previous, place] * to
        mass = after
    return third, everywhere


MEMORY = np.array([[0, 0, 0], [0, 0, 1], [0, 0, 0]])  # in the third state, the previous one


def memoryless():
    """Every policy that predicts by the present state only."""
    return [np.tile(policy, (3, 1)) for policy in itertools.product(range(3), repeat=3)]


@pytest.mark.parametrize("steps", [1, 2, 5, 100])
def test_what_a_memory_of_one_step_is_worth(steps):
    """No longer memory predicts more: from the first two states nothing is known."""
    third = (1 - 3 * (1 - (-1 / 3) ** steps) / (4 * steps)) / 4  # the share of steps spent there
    guessed = (1 - third) / 3
    np.testing.assert_allclose(shares(MEMORY, steps), [4 * third, guessed + third], atol=1e-12)
    without = np.array([shares(policy, steps) for policy in memoryless()]).max(axis=0)
    np.testing.assert_allclose(without, [2 * third, guessed + third / 2], atol=1e-12)
    if steps == 100:  # 1 and 1/2, 1/2 and 3/8, but for the beginning
        np.testing.assert_allclose(
            [*shares(MEMORY, steps), *without], [1, 0.5, 0.5, 0.375], atol=0.01
        )


def by_memory(seen, time, key):
    return jnp.where(seen[time] == THIRD, seen[time - 1], 0)


@pytest.mark.slow
def test_the_chain_moves_as_the_paper_says():
    seen, reward, terminated, truncated, state = play(envs.ThreeState(40), by_memory, 40)
    seen = np.asarray(seen)
    np.testing.assert_array_equal(seen[:, :40], state.place)
    assert set(np.unique(seen[:, 0])) == {0, 1}
    assert abs(seen[:, 0].mean() - 1 / 2) < 4 * 0.5 / np.sqrt(EPISODES)
    before, here, after = seen[:, :-2].ravel(), seen[:, 1:-1].ravel(), seen[:, 2:].ravel()
    np.testing.assert_array_equal(after[here == THIRD], before[here == THIRD])
    for place in (0, 1):
        share = np.bincount(after[here == place], minlength=3) / np.sum(here == place)
        error = np.sqrt(2 / 9 / np.sum(here == place))
        assert (np.abs(share - 1 / 3) < 4 * error).all()
    np.testing.assert_allclose(reward, np.where(seen[:, :40] == THIRD, 4 / 40, 0), rtol=1e-6)
    assert not terminated.any()
    assert truncated[:, -1].all() and not truncated[:, :-1].any()


@pytest.mark.slow
@pytest.mark.parametrize("scored", ["third", "all"])
@pytest.mark.parametrize(
    ("policy", "table"),
    [(by_memory, MEMORY), (constantly(1), np.ones((3, 3), int))],
    ids=["memory", "memoryless"],
)
def test_returns_are_the_expected_ones(policy, table, scored):
    total = returns(play(envs.ThreeState(40, scored), policy, 40))
    expected = shares(table, 40)[scored == "all"]
    assert abs(total.mean() - expected) < 4 * total.std() / np.sqrt(EPISODES)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "three_state",
            {"max_episode_length": 0},
            r"`max_episode_length` \(=0\) must be a whole number of at least 1",
        ),
        (
            "three_state",
            {"scored": "second"},
            r"`scored` \(='second'\) must be one of third, all\.",
        ),
        (
            "three_state_cycle",
            {"advance": 1.5},
            r"`advance` \(=1\.5\) must be in \[0, 1\]",
        ),
        ("three_state_cycle", {"max_episode_length": 0}, r"`max_episode_length` \(=0\) must be"),
    ],
)
def test_values_that_break_a_rule(name, options, message):
    with pytest.raises(ValueError, match=message):
        envs.make(name, **options)


# The cycle.


def best_names(advance, steps):
    """The likeliest state after j steps without seeing state 0, and the best expected return.

    By filtering: `mass[j]` is the joint probability of j (the last row: state 0 never seen, so that
    j + 1 is the time) and of the state.
    """
    move = np.array(
        [[1 - advance, advance, 0], [0, 1 - advance, advance], [advance, 0, 1 - advance]]
    )
    since, never = np.zeros((steps, 3)), np.full(3, 1 / 3)
    since[0, 0], never[0] = never[0], 0
    names, total = np.zeros((2, steps), int), 0.0
    for time in range(steps):
        right = since.max(axis=1).sum() + never.max()
        total += (2 * right - 1) / steps
        names[1, time] = never.argmax()
        later, never = since @ move, never @ move
        since = np.zeros_like(since)
        since[0, 0] = later[:, 0].sum() + never[0]
        since[1:, 1:] = later[:-1, 1:]
        never[0] = 0
    belief = np.array([1.0, 0, 0])
    for j in range(1, steps):
        belief = belief @ move
        belief[0] = 0
        belief /= max(belief.sum(), 1e-300)
        names[0, j] = belief.argmax()
    return names, total


@pytest.mark.slow
@pytest.mark.parametrize("advance", [1.0, 0.9, 0.4])
def test_filtering_has_the_best_return(advance):
    env = envs.ThreeStateCycle(max_episode_length=30, advance=advance)
    names, best = best_names(advance, 30)
    table = jnp.asarray(names, jnp.int32)

    def policy(seen, time, key):
        place = jnp.arange(seen.shape[0])
        last = jnp.max(jnp.where((seen == 1) & (place <= time), place, -1))
        return jnp.where(last >= 0, table[0, time - last], table[1, time])

    total = returns(play(env, policy, 30))
    assert abs(total.mean() - best) < 4 * total.std() / np.sqrt(EPISODES)
    if advance == 1:
        # A start in state 1 or 2 is guessed; all else is known.
        assert abs(best - (1 - 2 / 3 / 30)) < 1e-12
        np.testing.assert_allclose(np.unique(total.round(5)), [1 - 2 / 30, 1], atol=1e-5)
    assert best > 1 / 3 + 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (uniformly(3), -1 / 3),
        # The best without memory: state 0 is known, and of the two others one is right.
        (lambda seen, time, key: 1 - seen[time], 1 / 3),
    ],
)
def test_the_cycle_without_memory(policy, expected):
    env = envs.ThreeStateCycle(max_episode_length=30)
    total = returns(play(env, policy, 30))
    assert abs(total.mean() - expected) < 4 * total.std() / np.sqrt(EPISODES)


@pytest.mark.slow
def test_the_cycle_moves_as_often_as_it_should():
    seen, _, terminated, truncated, state = play(envs.ThreeStateCycle(30), constantly(0), 30)
    place = np.asarray(state.place)
    np.testing.assert_array_equal(np.asarray(seen)[:, :30], place == 0)
    moves = (place[:, 1:] - place[:, :-1]) % 3
    assert set(np.unique(moves)) == {0, 1}
    assert abs(moves.mean() - 0.9) < 4 * 0.3 / np.sqrt(moves.size)
    starts = np.bincount(place[:, 0], minlength=3)
    assert ((starts - EPISODES / 3) ** 2 / (EPISODES / 3)).sum() < 2 + 5 * 2
    assert not terminated.any()
    assert truncated[:, -1].all() and not truncated[:, :-1].any()
