"""Concentration by itself: the law of its board, and the return of random clicks."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from tests.cases import slow_but
from tests.envs.shuffles import assert_shuffled, primitives

EPISODES = 4096

each_deck = pytest.mark.parametrize("deck_type", slow_but(["ranks"], ["colors", "ranks"]))


@functools.partial(jax.jit, static_argnums=0)
def _play(env, keys, actions):
    """Observations and rewards up to the end of the episode; both are 0 after it."""
    params = env.default_params

    def step(carry, x):
        state, over = carry
        _, state, reward, terminated, _, info = env.step(x[0], state, x[1], params)
        seen = jnp.where(over, 0, info["final_observation"])
        return (state, over | terminated), (seen, jnp.where(over, 0, reward))

    def episode(key, actions):
        _, state = env.reset(key, params)
        carry = state, jnp.zeros((), bool)
        return jax.lax.scan(step, carry, (jax.random.split(key, len(actions)), actions))[1]

    return jax.vmap(episode)(keys, actions)


def play(env, actions):
    keys = jax.random.split(jax.random.key(3), len(actions))
    return jax.device_get(_play(env, keys, actions))


@pytest.mark.slow
@each_deck
def test_the_board_is_shuffled(deck_type):
    """In whichever order the cards are turned."""
    env = envs.Concentration(deck_type=deck_type)
    rng = np.random.default_rng(0)
    places = np.arange(env.num_cards)
    order = np.stack([places, places[::-1], *(rng.permutation(places) for _ in range(6))])
    actions = np.tile(order, (EPISODES // len(order), 1))
    seen, _ = play(env, actions)
    cards = np.take_along_axis(seen, actions[..., None], axis=2)[..., 0]
    assert_shuffled(cards, env.kinds)  # as turned
    assert_shuffled(np.take_along_axis(cards, np.argsort(actions, axis=1), axis=1), env.kinds)


def random_return(env):
    """Expected return of uniform clicks, from the cards of each kind that are face down."""
    n, steps = env.num_cards, env.num_steps

    @functools.cache
    def value(down, first, left):
        """`first` is how many cards of the turned card's kind are down, 0 if none is turned."""
        if not left or not down:
            return 0.0
        up = 1 - sum(down) / n
        if not first:
            matched = -1 / steps + value(down, 0, left - 1)
            chances = ((kind, down.count(kind) * kind / n) for kind in set(down))
            return up * matched + sum(p * value(down, kind, left - 1) for kind, p in chances)
        pair = (first - 1) / n
        rest = list(down)
        rest.remove(first)
        fewer = tuple(sorted([*rest, first - 2] if first > 2 else rest))
        found = 2 / n + value(fewer, 0, left - 1)
        return pair * found + (1 - pair) * (-2 / steps + value(down, 0, left - 1))

    return value((n // env.kinds,) * env.kinds, 0, steps)


@pytest.mark.slow
@each_deck
def test_random_clicks_have_the_expected_return(deck_type):
    env = envs.Concentration(deck_type=deck_type)
    actions = np.random.default_rng(1).integers(env.num_cards, size=(EPISODES, env.num_steps))
    _, rewards = play(env, actions)
    returns = np.asarray(rewards, np.float64).sum(axis=1)
    error = returns.std() / np.sqrt(EPISODES)
    assert abs(returns.mean() - random_return(env)) < 5 * error < 0.02


@pytest.mark.slow
def test_turning_all_pairs_gives_one_and_a_pair_of_three_is_none():
    """By hand: a board of which all is known, and the rules of one turn after another."""
    env = envs.Concentration(deck_type="colors")
    params, step = env.default_params, jax.jit(env.step)
    observation, state = env.reset(jax.random.key(0), params)
    np.testing.assert_array_equal(observation, [2] * 52)
    board = jnp.arange(52, dtype=jnp.int32) % 2
    state = state.replace(board=board, remaining=jnp.zeros(2, jnp.int32))
    turns = [
        (4, 0, [4]),
        (4, -2 / 104, [4]),  # the same card is no pair
        (0, 0, [0]),
        (1, -2 / 104, [0, 1]),
        (0, 0, [0]),
        (2, 2 / 52, [0, 2]),
        (2, -1 / 104, [0, 2]),  # it is up already, and the turn is over
        (4, 0, [0, 2, 4]),
        (0, -2 / 104, [0, 2, 4]),
        (4, 0, [0, 2, 4]),
    ]
    for time, (action, expected, sight) in enumerate(turns, 1):
        observation, state, reward, *flags, _ = step(jax.random.key(1), state, action, params)
        np.testing.assert_allclose(reward, expected, rtol=1e-6)
        np.testing.assert_array_equal(np.flatnonzero(observation != 2), sight)
        np.testing.assert_array_equal(observation[np.asarray(sight)], board[np.asarray(sight)])
        assert not any(flags)
        assert state.time == time


@pytest.mark.slow
def test_a_reset_permutes_no_board():
    env = envs.Concentration()
    _, state = env.reset(jax.random.key(0), env.default_params)
    program = jax.make_jaxpr(env.step)(jax.random.key(0), state, jnp.int32(0), env.default_params)
    assert not set(primitives(program.jaxpr)) & {"sort", "while", "scan", "top_k"}
    # A reset draws nothing.
    program = jax.make_jaxpr(env.reset)(jax.random.key(0), env.default_params)
    assert "random_bits" not in set(primitives(program.jaxpr))
