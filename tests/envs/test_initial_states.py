"""Pools of initial states: kept exactly, chosen evenly, and the package's reset out of the way."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from agents.envs.bridges import craftax_port, initial_states
from tests.cases import slow_but
from tests.envs import fake_packages

SIZE = 37  # no multiple of the batches that states are drawn in


def made(**options):
    with fake_packages.installed():
        return craftax_port.craftax(**options)


def inner_states(env, keys, params):
    return jax.jit(jax.vmap(env.reset, (0, None)))(keys, params)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint32, np.bool_, np.uint8])
@pytest.mark.parametrize("values", slow_but((257,), (1, 2, 256, 257)))
def test_a_packed_pool_is_the_same_to_the_bit(getkey, dtype, values):
    size = 64
    bits = np.asarray(jax.random.randint(getkey(), (size, 3, 5), 0, values, jnp.int32))
    x = bits.astype(dtype)
    if dtype == np.float32:
        x = np.where(bits % 7 == 0, np.float32(-0.0), np.where(bits % 7 == 1, np.nan, x / 8))
        x = x.astype(np.float32)
    zeros = np.where(np.arange(size) % 2, np.float32(-0.0), np.float32(0.0))
    pool = initial_states.packed(
        {"x": x, "tree": (x[:, 0], np.full((size, 2), 3, dtype)), "zeros": zeros}
    )
    keys = jax.random.split(getkey(), 200)
    found = jax.jit(jax.vmap(lambda key: initial_states.chosen(pool, key)))(keys)
    index = np.asarray(jax.vmap(lambda k: jax.random.bits(k, dtype=jnp.uint32))(keys)) % size
    expected = {
        "x": x[index],
        "tree": (x[index, 0], np.full((200, 2), 3, dtype)),
        "zeros": zeros[index],
    }
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert ours.dtype == theirs.dtype
        assert np.asarray(ours).tobytes() == theirs.tobytes()


def test_what_few_values_need_is_small():
    light = np.tile(np.float32([0.1, 0.9]), (512, 1000))
    light[0] = 0.5
    pool = initial_states.packed({"light": light, "same": np.ones((512, 4000), np.float32)})
    assert sum(x.nbytes for x in jax.tree.leaves(pool)) < 512 * 2000 + 4000 * 4 + 100


@pytest.mark.parametrize(
    "pool",
    [
        pytest.param({"seen": np.ones((3, 8)), "time": np.ones(3)}, id="another shape"),
        pytest.param({"seen": np.ones((3, 4))}, id="another structure"),
        pytest.param({"seen": np.ones((3, 4)), "time": np.ones(2)}, id="of two sizes"),
        pytest.param({"seen": np.ones((0, 4)), "time": np.ones(0)}, id="no state"),
        pytest.param({"seen": np.ones(4), "time": 1.0}, id="a state"),
        pytest.param((), id="nothing"),
        pytest.param(3, id="a number"),
    ],
)
def test_a_pool_that_is_not_of_the_environment_is_refused(pool):
    draw = jax.jit(jax.vmap(lambda key: {"seen": jnp.ones(4), "time": jnp.ones(())}))
    initial_states.check_states({"seen": np.ones((3, 4)), "time": np.ones(3)}, draw)
    with pytest.raises(
        ValueError, match=r"`initial_states` \(of shapes .*\) must be what `draw_in"
    ):
        initial_states.check_states(pool, draw)


@pytest.mark.slow
def test_resets_choose_evenly_among_the_states_that_the_package_makes():
    env = made(pool_size=SIZE)
    keys = jax.random.split(jax.random.key(5), 40 * SIZE)
    observation, state = inner_states(env, keys, env.default_params)
    # The key of a state is the one that its package was given.
    package = np.asarray(jax.random.key_data(jax.random.split(jax.random.key(0), SIZE)))
    which = [int(np.flatnonzero((package == key).all(1))[0]) for key in np.asarray(state.inner.key)]
    counts = np.bincount(which, minlength=SIZE)
    assert counts.size == SIZE
    assert abs(((counts - 40) ** 2 / 40).sum() - (SIZE - 1)) < 5 * np.sqrt(2 * (SIZE - 1))
    with envs.bridges.package_env.package_settings():
        first, inner = jax.vmap(lambda key: env.port.reset(key))(package[np.asarray(which)])
    np.testing.assert_array_equal(observation, first.astype(jnp.float32))
    np.testing.assert_array_equal(state.inner.place, inner.place)
    assert not state.time.any()
    assert not state.terminated.any()


@pytest.mark.slow
def test_no_program_holds_the_reset_of_the_package(monkeypatch):
    env, params = made(pool_size=3), None
    jax.block_until_ready(jax.jit(env.reset)(jax.random.key(0)))

    def never(*_):
        raise AssertionError("a reset of the package is part of the program")

    monkeypatch.setattr(type(env.port.env), "reset_env", never)
    keys = jax.random.split(jax.random.key(1), 20)
    batch = jax.random.split(jax.random.key(2), 2)

    def step(state, key):
        keys = jax.random.split(key, 2)
        _, state, _, terminated, *_ = jax.vmap(env.step, (0, 0, 0, None))(
            keys, state, jnp.ones(2, int), params
        )
        return state, terminated

    def play(batch, keys):
        return jax.lax.scan(step, jax.vmap(env.reset, (0, None))(batch, params)[1], keys)

    _, terminated = jax.jit(play)(batch, keys)
    assert terminated.any()
    # Another environment of the same origin has the same states, and does not make them either.
    jax.eval_shape(made(pool_size=3).reset, jax.random.key(0))
    with pytest.raises(AssertionError, match="is part of the program"):
        jax.eval_shape(made(pool_size=2).reset, jax.random.key(0))
    with pytest.raises(AssertionError, match="is part of the program"):
        jax.eval_shape(made(pool_size=0).reset, jax.random.key(0))


def test_without_a_pool_a_reset_is_one_of_the_package():
    env = made(pool_size=0)
    keys = jax.random.split(jax.random.key(3), 5)
    _, state = inner_states(env, keys, env.default_params)
    np.testing.assert_array_equal(state.inner.key, jax.random.key_data(keys))


@pytest.mark.slow
def test_other_initial_states_are_used():
    env = made(pool_size=SIZE)
    pool = env.draw_initial_states(jax.random.key(9), 2)
    params = env.default_params.replace(initial_states=pool)
    _, state = inner_states(env, jax.random.split(jax.random.key(4), 50), params)
    expected = np.asarray(jax.random.key_data(jax.random.split(jax.random.key(9), 2)))
    np.testing.assert_array_equal(
        np.unique(np.asarray(state.inner.key), axis=0), np.unique(expected, axis=0)
    )
    # An argument, so that others need no new program.
    reset = jax.jit(env.reset)
    reset(jax.random.key(0), params)
    others = env.draw_initial_states(jax.random.key(10), 2)
    reset(jax.random.key(0), params.replace(initial_states=others))
    assert reset._cache_size() == 1
    wrong = jax.tree.map(lambda x: x[..., None], others)
    with pytest.raises(ValueError, match=r"`initial_states` \(of shapes \(\(2, .* must be what"):
        reset(jax.random.key(0), params.replace(initial_states=wrong))


def test_sizes_that_break_a_rule():
    with fake_packages.installed():
        make = functools.partial(envs.make, "craftax/Craftax-Symbolic-v1")
        with pytest.raises(
            ValueError, match=r"`pool_size` \(=-1\) must be a whole number of at least 0\."
        ):
            make(pool_size=-1)
        with pytest.raises(TypeError, match=r"`pool_size` \(=1\.5\) must be a whole number"):
            make(pool_size=1.5)
    with pytest.raises(ValueError, match=r"`size` \(=0\) must be a whole number of at least 1\."):
        made(pool_size=3).draw_initial_states(jax.random.key(0), 0)
