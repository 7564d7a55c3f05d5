"""Resets made only where they are needed are those that would have been made everywhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments.environment import Environment

from agents import envs
from agents.envs.core.lazy_reset import LazyReset, replaced_where

CHUNK = LazyReset.resets_at_once
SIZE = 2 * CHUNK + 5


def make(key, scale):
    bits = jax.random.bits(key, (2,), jnp.uint32)
    return {"bits": bits * scale, "flag": bits[0] > bits[1]}


def arguments(seeds):
    keys = jax.random.split(jax.random.key(1), (seeds, SIZE))
    old = {"bits": jnp.zeros((seeds, SIZE, 2), jnp.uint32), "flag": jnp.zeros((seeds, SIZE), bool)}
    return keys, jnp.uint32(3), old


def flags_of(case, seeds):
    rng = np.random.default_rng(0)
    share = {"none": 0, "few": 0.1, "most": 0.9, "all": 1}[case]
    return jnp.asarray(rng.random((seeds, SIZE)) < share)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["none", "few", "most", "all"])
def test_replaced_where_is_a_selection(case):
    keys, scale, old = arguments(2)
    flags = flags_of(case, 2)

    def selected(flag, key, scale, old):
        return jax.tree.map(lambda x, y: jnp.where(flag, x, y), make(key, scale), old)

    def replaced(flag, key, scale, old):
        return replaced_where(flag, make, (key, scale), old, CHUNK)

    def twice(function):
        return jax.jit(jax.vmap(jax.vmap(function, (0, 0, None, 0)), (0, 0, None, 0)))

    actual, expected = (twice(f)(flags, keys, scale, old) for f in (replaced, selected))
    jax.tree.map(np.testing.assert_array_equal, actual, expected)
    # One flag for all, and nothing batched but the keys.
    one = jax.jit(jax.vmap(replaced, (None, 0, None, None)))
    first = jax.tree.map(lambda x: x[0, 0], old)
    actual = one(flags[0, 0], keys[0], scale, first)
    everywhere = jax.vmap(selected, (None, 0, None, None))(flags[0, 0], keys[0], scale, first)
    jax.tree.map(np.testing.assert_array_equal, actual, everywhere)
    alone = jax.jit(replaced)(flags[0, 0], keys[0, 0], scale, first)
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(x, y[0]), alone, everywhere)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("case", ["none", "few", "most", "all"])
def test_nothing_is_made_in_vain(case):
    """As many at once as fit into a chunk, as often as there are chunks of set flags."""
    made = []

    def record(x):
        made.append(x.shape)
        return x

    def make(x):
        kind = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(record, kind, x, vmap_method="expand_dims")

    flags = flags_of(case, 1)[0]
    old = jnp.arange(SIZE, dtype=jnp.float32)
    new = jax.jit(jax.vmap(lambda f, x, y: replaced_where(f, make, (x,), y, CHUNK)))(
        flags, -old, old
    )
    np.testing.assert_array_equal(new, np.where(flags, -old, old))
    assert made == [(CHUNK,)] * -(-int(flags.sum()) // CHUNK)


@pytest.mark.slow
def test_step_is_the_step_of_gymnax():
    env, params = envs.make("MineSweeperEasy")
    keys = jax.random.split(jax.random.key(2), SIZE)
    _, state = jax.vmap(env.reset, (0, None))(keys, params)
    actions = jax.vmap(env.action_space(params).sample)(keys)
    step = jax.vmap(lambda k, s, a: env.step(k, s, a, params))
    plain = jax.vmap(lambda k, s, a: Environment.step(env, k, s, a, params))

    @jax.jit
    def both(keys, state, actions):
        return step(keys, state, actions), plain(keys, state, actions)

    ended = 0
    for _ in range(8):
        actual, expected = both(keys, state, actions)
        jax.tree.map(np.testing.assert_array_equal, actual, expected)
        ended += int(actual[3].sum())
        state = actual[1]
        keys = jax.vmap(lambda key: jax.random.fold_in(key, 1))(keys)
        actions = (actions + 1) % 4
    assert ended > CHUNK
