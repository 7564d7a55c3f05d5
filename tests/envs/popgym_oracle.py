"""POPGym's Python package as an oracle: an episode of ours is played again on its environment."""

import functools

import jax
import numpy as np


@functools.partial(jax.jit, static_argnums=0)
def _episodes(env, params, keys, actions, fields):
    def step(state, x):
        key, action = x
        _, state, reward, terminated, truncated, info = env.step(key, state, action, params)
        return state, (info["final_observation"], reward, terminated, truncated)

    def episode(key, actions, fields):
        key_reset, key_steps = jax.random.split(key)
        first, state = env.reset(key_reset, params)
        keys = jax.random.split(key_steps, len(actions))
        return first, *jax.lax.scan(step, state.replace(**fields), (keys, actions))[1]

    return jax.vmap(episode)(keys, actions, fields)


def our_episodes(env, params, actions, fields=None):
    """Play actions `[seed, time, ...]` on our environment.

    `fields` `[seed, ...]` replace those of the state after the reset. The result is a list over
    seeds of (observations with the first one, rewards, terminated, truncated, actions), up to the
    end of the episode.
    """
    keys = jax.random.split(jax.random.key(2023), len(actions))
    out = jax.device_get(_episodes(env, params, keys, actions, fields or {}))
    first, observation, reward, terminated, truncated = out
    episodes = []
    for seed in range(len(actions)):
        done = terminated[seed] | truncated[seed]
        steps = np.argmax(done) + 1 if done.any() else len(done)
        seen = np.concatenate([first[seed][None], observation[seed]])[: steps + 1]
        parts = (reward[seed], terminated[seed], truncated[seed], actions[seed])
        episodes.append((seen, *(part[:steps] for part in parts)))
    return episodes


def assert_same_episode(theirs, episode, rtol=0.0):
    """Play the episode's actions on POPGym's environment, which draws nothing at random any more.

    Observations that are tuples there are vectors here.
    """
    seen, reward, terminated, truncated, actions = episode
    first, _ = theirs.reset()
    steps = [theirs.step(action) for action in actions.tolist()]
    observation, their_reward, their_terminated, their_truncated, _ = zip(*steps, strict=True)
    their_seen = np.stack(
        [np.hstack(o if isinstance(o, tuple) else [o]) for o in (first, *observation)]
    )
    np.testing.assert_array_equal(seen.reshape(their_seen.shape), their_seen)
    np.testing.assert_allclose(reward, np.asarray(their_reward, np.float32), rtol=rtol, atol=0)
    np.testing.assert_array_equal(terminated, their_terminated)
    np.testing.assert_array_equal(truncated, their_truncated)


def order_of(kind_of, kinds):
    """An order of cards with these kinds in it, each card once; card i is of kind `kind_of[i]`."""
    assert len(kinds) == len(kind_of)
    order = np.empty(len(kinds), int)
    for kind in np.unique(kind_of):
        order[kinds == kind] = np.flatnonzero(kind_of == kind)
    return order


def stack(deck, order):
    """Let every reset of POPGym's deck leave it in this order instead of a random one."""

    def reset(rng):
        type(deck).reset(deck, shuffle=False)
        deck.idx = order

    deck.reset = reset
