"""The card games by themselves: their cards' distribution, their best and their random return."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from tests.cases import slow_but
from tests.envs.shuffles import assert_shuffled, primitives

EPISODES = 4096


def best_action(env, seen, time):
    """The best answer after the observations of steps 0 to `time`."""
    if isinstance(env, envs.RepeatFirst):
        return seen[0]
    if isinstance(env, envs.RepeatPrevious):
        return seen[jnp.maximum(time + 1 - env.k, 0)]
    if isinstance(env, envs.Autoencode):
        return seen[2 * env.num_cards - 2 - time, 1]
    past = jnp.arange(len(seen)) <= time
    if isinstance(env, envs.CountRecall):
        return (past & (seen[:, 0] == seen[time, 1])).sum()
    # As many cards are lower in a full deck as are higher than the mirrored rank.
    lower = 4 * env.decks * seen[time] - (past & (seen < seen[time])).sum()
    higher = 4 * env.decks * (12 - seen[time]) - (past & (seen > seen[time])).sum()
    return lower > higher


@functools.cache
def play(env, policy, episodes):
    """Observations and rewards of `_play`, in NumPy."""
    return jax.device_get(_play(env, policy, episodes))


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _play(env, policy, episodes):
    """Observations `[episode, steps + 1, ...]` and rewards `[episode, steps]` of a policy.

    It is `"best"`, `"random"`, or `"peek"`, which knows the next observation.
    """
    params = env.default_params

    def step(carry, key):
        state, seen, time = carry
        key_action, key_step = jax.random.split(key)
        if policy == "best":
            action = best_action(env, seen, time)
        elif policy == "random":
            action = env.action_space(params).sample(key_action)
        else:
            next_rank = env.step(key_step, state, 0, params)[5]["final_observation"]
            action = next_rank < seen[time]
        action = action.astype(jnp.int32)
        _, state, reward, _, _, info = env.step(key_step, state, action, params)
        seen = seen.at[time + 1].set(info["final_observation"])
        return (state, seen, time + 1), reward

    def episode(key):
        key_reset, key_steps = jax.random.split(key)
        first, state = env.reset(key_reset, params)
        seen = jnp.zeros((env.num_steps + 1, *first.shape), jnp.int32).at[0].set(first)
        keys = jax.random.split(key_steps, env.num_steps)
        (_, seen, _), rewards = jax.lax.scan(step, (state, seen, jnp.int32(0)), keys)
        return seen, rewards

    return jax.vmap(episode)(jax.random.split(jax.random.key(7), episodes))


GAMES = [
    envs.RepeatFirst(),
    envs.RepeatFirst(decks=3),
    envs.RepeatPrevious(),
    envs.RepeatPrevious(decks=2, k=32),
    envs.RepeatPrevious(decks=2, k=1),
    envs.Autoencode(),
    envs.CountRecall(),
    envs.CountRecall(decks=2, deck_type="ranks"),
    envs.HigherLower(),
    envs.HigherLower(decks=3),
]


def name_of(env):
    options = (getattr(env, option, "") for option in ("decks", "k", "deck_type"))
    return "-".join([env.name, *map(str, options)]).strip("-")


# As unlike each other as can be.
QUICK = [GAMES[0], GAMES[5], GAMES[9]]
every_game = pytest.mark.parametrize("env", slow_but(QUICK, GAMES), ids=name_of)


def decks_of(env, seen):
    """The order of cards `[episode, 52 d]` of every deck, and how many kinds of cards there are."""
    if isinstance(env, envs.Autoencode):
        return [seen[:, : env.num_cards, 1]], 4
    if isinstance(env, envs.CountRecall):
        return [seen[..., 0], seen[..., 1]], env.kinds
    return [seen], 13 if isinstance(env, envs.HigherLower) else 4


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("env", slow_but(QUICK, GAMES[:-2]), ids=name_of)
def test_best_policy_has_return_one(env):
    _, rewards = play(env, "best", 64)
    assert (rewards >= 0).all()
    np.testing.assert_allclose(rewards.sum(axis=1), 1.0, atol=1e-5)


@pytest.mark.slow
@every_game
def test_random_policy_has_the_expected_return(env):
    """A scored step gives 1 / n with probability p and -1 / n otherwise, whatever happened."""
    _, rewards = play(env, "random", EPISODES)
    if isinstance(env, envs.HigherLower):
        # A pair of neighbors differs with probability 1 - (n/13 - 1)/(n - 1); there are n - 1.
        n, p, scored = env.num_cards, 1 / 2, env.num_cards * 12 / 13
    else:
        scored = n = (np.asarray(rewards[0]) != 0).sum()
        p = 1 / env.num_actions
    error = np.sqrt(4 * p * (1 - p) * scored / EPISODES) / n
    mean = np.asarray(rewards, np.float64).sum(axis=1).mean()
    assert abs(mean - (2 * p - 1) * scored / n) < 4 * error


@pytest.mark.slow
@pytest.mark.parametrize("env", GAMES[-2:], ids=name_of)
def test_higher_lower_by_peeking_and_by_counting(env):
    n = env.num_cards
    seen, rewards = play(env, "peek", EPISODES)
    np.testing.assert_array_equal(rewards, np.float32(1 / n) * (seen[:, 1:] != seen[:, :-1]))
    returns = np.asarray(rewards, np.float64).sum(axis=1)
    assert abs(returns.mean() - 12 / 13) < 5 * returns.std() / np.sqrt(EPISODES)
    # The best guess gains |higher - lower| / remaining on average, in units of 1 / n.
    seen, rewards = play(env, "best", EPISODES)
    left = 4 * env.decks - np.cumsum(seen[:, :-1, None] == np.arange(13), axis=1)
    side = np.sign(np.arange(13) - seen[:, :-1, None])
    law = np.abs((side * left).sum(axis=2)) / left.sum(axis=2)
    gain = np.asarray(rewards, np.float64).sum(axis=1)
    assert abs(gain.mean() - law.sum(axis=1).mean() / n) < 5 / np.sqrt(n * EPISODES)
    # More than who remembers nothing: sum over ranks of |12 - 2 rank| * 4 d / n / 13.
    assert gain.mean() - 84 / 169 > 5 * gain.std() / np.sqrt(EPISODES)


@pytest.mark.quick_rows(1)
@every_game
def test_an_episode_deals_the_deck(env):
    decks, kinds = decks_of(env, play(env, "random", EPISODES)[0])
    for cards in decks:
        for kind in range(kinds):
            assert ((cards == kind).sum(axis=1) == env.num_cards // kinds).all()


@pytest.mark.slow
@every_game
def test_cards_are_shuffled(env):
    decks, kinds = decks_of(env, play(env, "random", EPISODES)[0])
    for cards in decks:
        assert_shuffled(cards, kinds)
    if len(decks) == 2:  # and by themselves
        # The number of agreements has the variance n^2 (kinds - 1) / kinds^2 / (n - 1).
        error = np.sqrt((kinds - 1) / (env.num_cards - 1) / EPISODES) / kinds
        assert abs((decks[0] == decks[1]).mean() - 1 / kinds) < 5 * error


@pytest.mark.slow
@every_game
def test_a_reset_permutes_no_deck(env):
    """gymnax resets at every step, so a reset has to be as cheap as dealing a card."""
    program = jax.make_jaxpr(env.step)(*_arguments(env)).jaxpr
    used = set(primitives(program))
    assert "random_bits" in used
    assert not used & {"sort", "while", "scan", "top_k"}
    # What a shuffled deck would use is seen.
    shuffled = jax.make_jaxpr(lambda key: jax.random.permutation(key, 52))(jax.random.key(0))
    assert "sort" in set(primitives(shuffled.jaxpr))


def _arguments(env):
    key = jax.random.key(0)
    return key, env.reset(key, env.default_params)[1], jnp.int32(0), env.default_params


@pytest.mark.quick_rows(1)
@every_game
def test_flags_at_the_end_and_at_a_time_limit(env):
    n = env.num_steps + 1
    params = env.default_params
    _, state, *_ = _arguments(env)
    for limit, time, flags in (
        (n - 1, n - 3, (False, False)),
        (n - 1, n - 2, (True, False)),  # the default limit is met, but it is not the reason
        (n + 5, n - 2, (True, False)),
        (n - 2, n - 3, (False, True)),
        (7, 5, (False, False)),
        (7, 6, (False, True)),
    ):
        last = state.replace(time=jnp.int32(time))
        out = env.step(
            jax.random.key(0),
            last,
            jnp.int32(0),
            params.replace(max_steps_in_episode=limit),
        )
        assert (bool(out[3]), bool(out[4])) == flags


@pytest.mark.slow
def test_the_ring_of_recent_cards_is_empty_after_a_reset():
    env = envs.RepeatPrevious(k=5)
    key, state, action, params = _arguments(env)
    full = state.replace(time=jnp.int32(50), recent=jnp.full(5, 3, jnp.int32))
    observation, state, *_ = env.step(key, full, action, params)
    np.testing.assert_array_equal(state.recent, [int(observation), 0, 0, 0, 0])
    assert state.remaining.sum() == 51
    assert state.time == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: envs.RepeatPrevious(k=60),
            r"`k` \(=60\) must be at least 1 and less than 52 \* decks \(=52\)\.",
        ),
        (lambda: envs.RepeatPrevious(k=52), r"`k` \(=52\) must be at least 1 and less than"),
        (
            lambda: envs.RepeatPrevious(decks=2, k=0),
            r"`k` \(=0\) must be at least 1 and less than 52 \* decks \(=104\)\.",
        ),
        (
            lambda: envs.HigherLower(decks=1261),
            r"`decks` \(=1261\) must be a whole number from 1 to 1260",
        ),
        (
            lambda: envs.CountRecall(decks=1261),
            r"`decks` \(=1261\) must be a whole number from 1 to 1260",
        ),
        (
            lambda: envs.RepeatPrevious(decks=0),
            r"`decks` \(=0\) must be a whole number from 1 to 1260",
        ),
        (
            lambda: envs.RepeatFirst(decks=-1),
            r"`decks` \(=-1\) must be a whole number from 1 to 1260",
        ),
        (
            lambda: envs.Autoencode(decks=0),
            r"`decks` \(=0\) must be a whole number from 1 to 1260",
        ),
        (
            lambda: envs.CountRecall(decks=0),
            r"`decks` \(=0\) must be a whole number from 1 to 1260",
        ),
        (
            lambda: envs.CountRecall(deck_type="jokers"),
            r"`deck_type` \(='jokers'\) must be 'colors', 'suits' or 'ranks'\.",
        ),
        (
            lambda: envs.HigherLower(decks=0),
            r"`decks` \(=0\) must be a whole number from 1 to 1260",
        ),
        (
            lambda: envs.Concentration(decks=0),
            r"`decks` \(=0\) must be a whole number from 1 to 1260",
        ),
        (
            lambda: envs.Concentration(deck_type="suits"),
            r"`deck_type` \(='suits'\) must be 'colors' or 'ranks'\.",
        ),
        (
            lambda: envs.MultiarmedBandit(arms=0),
            r"`arms` \(=0\) must be a whole number of at least 1\.",
        ),
        (
            lambda: envs.MultiarmedBandit(episode_length=0),
            r"`episode_length` \(=0\) must be a whole number of at least 1\.",
        ),
    ],
)
def test_values_that_break_a_rule(make, message):
    with pytest.raises(ValueError, match=message):
        make()
