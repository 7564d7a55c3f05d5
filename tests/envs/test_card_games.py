"""The card games by themselves: their cards' distribution, their best and their random return."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from agents.envs.card_game import check_integer
from tests.envs import quick

EPISODES = 4096


def best_action(env, cards, time):
    """The right answer after the cards of steps 0 to `time`."""
    if isinstance(env, envs.RepeatFirst):
        return cards[0]
    return cards[jnp.maximum(time + 1 - env.k, 0)]


@functools.cache
def play(env, best, episodes):
    """Cards and rewards of `_play`, in NumPy."""
    return jax.device_get(_play(env, best, episodes))


@functools.partial(quick.jit, static_argnums=(0, 1, 2))
def _play(env, best, episodes):
    """Cards `[episode, 52 d]` and rewards `[episode, 52 d - 1]` of the best or a random policy."""
    params = env.default_params

    def step(carry, key):
        state, cards, time = carry
        key_action, key_step = jax.random.split(key)
        if best:
            action = best_action(env, cards, time)
        else:
            action = env.action_space(params).sample(key_action)
        _, state, reward, _, _, info = env.step(key_step, state, action, params)
        cards = cards.at[time + 1].set(info["final_observation"])
        return (state, cards, time + 1), reward

    def episode(key):
        key_reset, key_steps = jax.random.split(key)
        card, state = env.reset(key_reset, params)
        cards = jnp.zeros(env.num_cards, jnp.int32).at[0].set(card)
        keys = jax.random.split(key_steps, env.num_cards - 1)
        (_, cards, _), rewards = jax.lax.scan(step, (state, cards, jnp.int32(0)), keys)
        return cards, rewards

    return jax.vmap(episode)(jax.random.split(jax.random.key(7), episodes))


GAMES = [
    envs.RepeatFirst(),
    envs.RepeatFirst(decks=3),
    envs.RepeatPrevious(),
    envs.RepeatPrevious(decks=2, k=32),
    envs.RepeatPrevious(decks=2, k=1),
]
every_game = pytest.mark.parametrize(
    "env", GAMES, ids=lambda e: f"{e.name}-{e.decks}-{getattr(e, 'k', '')}"
)


@every_game
def test_best_policy_has_return_one(env):
    _, rewards = play(env, True, 64)
    assert (rewards >= 0).all()
    np.testing.assert_allclose(rewards.sum(axis=1), 1.0, atol=1e-5)


@every_game
def test_random_policy_has_return_minus_a_half(env):
    _, rewards = play(env, False, EPISODES)
    scored = (np.asarray(rewards[0]) != 0).sum()
    # A scored step gives ±1 / scored, + with probability 1/4, independently of all others.
    error = np.sqrt(3 / 4 / scored / EPISODES)
    mean = np.asarray(rewards, np.float64).sum(axis=1).mean()
    assert abs(mean + 0.5) < 4 * error


@every_game
def test_an_episode_deals_the_deck(env):
    cards, _ = play(env, False, EPISODES)
    for suit in range(4):
        assert (np.asarray(cards == suit).sum(axis=1) == 13 * env.decks).all()


@every_game
def test_cards_are_shuffled(env):
    """Chi-square against the law of a shuffled deck; the bounds are five standard deviations."""
    cards = np.asarray(play(env, False, EPISODES)[0])
    counts = np.stack([(cards == suit).sum(axis=0) for suit in range(4)])
    chi_square = ((counts - EPISODES / 4) ** 2 / (EPISODES / 4)).sum(axis=0)
    assert abs(chi_square.mean() - 3) < 5 * np.sqrt(6 / env.num_cards)
    # A pair of neighbors, wherever it is: the second card lacks the first one in its deck.
    n = env.num_cards
    probability = np.full((4, 4), n / 4) - np.eye(4)
    probability /= 4 * (n - 1)
    for place in (0, n // 2, n - 2):
        pairs = np.bincount(4 * cards[:, place] + cards[:, place + 1], minlength=16)
        expected = EPISODES * probability.ravel()
        assert ((pairs - expected) ** 2 / expected).sum() < 15 + 5 * np.sqrt(30)
    # All pairs together tell dealing without replacement from dealing with it.
    repeats = (cards[:, 1:] == cards[:, :-1]).mean()
    law = (n / 4 - 1) / (n - 1)
    error = np.sqrt(law * (1 - law) / EPISODES / (n - 1))
    assert abs(repeats - law) < 5 * error < 0.25 - law


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


def primitives(program):
    """Names of all primitives of a jaxpr, inside of inner ones too."""
    for equation in program.eqns:
        yield equation.primitive.name
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from primitives(inner)


def _arguments(env):
    key = jax.random.key(0)
    return key, env.reset(key, env.default_params)[1], jnp.int32(0), env.default_params


@every_game
def test_flags_at_the_end_and_at_a_time_limit(env):
    n = env.num_cards
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
        (lambda: envs.RepeatPrevious(decks=0), r"`decks` \(=0\) must be at least 1\."),
        (lambda: envs.RepeatFirst(decks=-1), r"`decks` \(=-1\) must be at least 1\."),
    ],
)
def test_values_that_break_a_rule(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("value", [1.5, "2", True, None])
def test_check_integer(value):
    with pytest.raises(TypeError, match=r"`decks` \(=.*\) must be an integer\."):
        check_integer("decks", value)
    assert check_integer("decks", np.int64(3)) == 3
