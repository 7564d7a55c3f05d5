"""POPGym's Python package is the oracle: the same cards and actions, the same everything else."""

import functools

import jax
import numpy as np
import pytest
from popgym.envs import repeat_first, repeat_previous

from agents import envs
from tests.envs import quick


def dealing_order(suits: np.ndarray) -> np.ndarray:
    """Cards of POPGym's deck, where card i has suit i % 4, with these suits, each card once."""
    order = np.empty_like(suits)
    for suit in range(4):
        places = np.flatnonzero(suits == suit)
        order[places] = suit + 4 * np.arange(len(places))
    return order


def popgym_episode(env, suits, actions):
    """Play `actions` on POPGym's environment with a deck in which `suits` come in this order."""
    order = dealing_order(suits)
    assert sorted(order) == list(range(env.deck.num_cards))
    plain_reset = type(env.deck).reset

    def reset_deck(rng):
        plain_reset(env.deck, shuffle=False)
        env.deck.idx = order[::-1]  # cards are dealt from the end

    env.deck.reset = reset_deck
    first, _ = env.reset(seed=0)
    steps = [env.step(action) for action in actions.tolist()]
    observation, reward, terminated, truncated, _ = zip(*steps, strict=True)
    return first, observation, reward, terminated, truncated


@functools.partial(quick.jit, static_argnums=(0, 1))
def our_episodes(env, steps, params, keys):
    """Play random actions to the end of the episode; results are `[seed, time]`."""

    def step(state, key):
        key_action, key_step = jax.random.split(key)
        action = env.action_space(params).sample(key_action)
        _, state, reward, terminated, truncated, info = env.step(key_step, state, action, params)
        return state, (info["final_observation"], reward, terminated, truncated, action)

    def episode(key):
        key_reset, key_steps = jax.random.split(key)
        first, state = env.reset(key_reset, params)
        return first, *jax.lax.scan(step, state, jax.random.split(key_steps, steps))[1]

    return jax.vmap(episode)(keys)


@pytest.mark.parametrize(
    ("name", "options", "oracle", "seeds"),
    [
        ("RepeatFirstEasy", {}, repeat_first.RepeatFirstEasy, 200),
        ("RepeatFirstMedium", {}, repeat_first.RepeatFirstMedium, 200),
        ("RepeatFirstHard", {}, repeat_first.RepeatFirstHard, 20),
        ("RepeatFirst", {"decks": 2}, lambda: repeat_first.RepeatFirst(2), 50),
        ("RepeatPreviousEasy", {}, repeat_previous.RepeatPreviousEasy, 200),
        ("RepeatPreviousMedium", {}, repeat_previous.RepeatPreviousMedium, 200),
        ("RepeatPreviousHard", {}, repeat_previous.RepeatPreviousHard, 20),
        ("RepeatPrevious", {"k": 1}, lambda: repeat_previous.RepeatPrevious(1, 1), 50),
        ("RepeatPrevious", {"k": 10}, lambda: repeat_previous.RepeatPrevious(1, 10), 50),
        ("RepeatPrevious", {"k": 51}, lambda: repeat_previous.RepeatPrevious(1, 51), 50),
        (
            "RepeatPrevious",
            {"decks": 2, "k": 57},
            lambda: repeat_previous.RepeatPrevious(2, 57),
            50,
        ),
    ],
)
def test_same_as_popgym(name, options, oracle, seeds):
    env, params = envs.make(name, **options)
    theirs = oracle()
    steps = theirs.max_episode_length
    assert envs.episode_steps(env, params) == steps
    keys = jax.random.split(jax.random.key(2023), seeds)
    first, observation, reward, terminated, truncated, action = map(
        np.asarray, our_episodes(env, steps, params, keys)
    )
    for seed in range(seeds):
        suits = np.concatenate([first[seed, None], observation[seed]])
        expected = popgym_episode(theirs, suits, action[seed])
        assert first[seed] == expected[0]
        np.testing.assert_array_equal(observation[seed], expected[1])
        np.testing.assert_array_equal(reward[seed], np.asarray(expected[2], np.float32))
        np.testing.assert_array_equal(terminated[seed], expected[3])
        np.testing.assert_array_equal(truncated[seed], expected[4])
    assert terminated[:, -1].all()
    # Both rewards occur, so that a constant one would have been noticed.
    assert reward.max() > 0 > reward.min()
