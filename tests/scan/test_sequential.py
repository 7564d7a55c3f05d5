"""`scan.sequential` against a Python loop, and `scan.reset`."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import scan

STATE = {"a": jnp.array([0.3, -0.2]), "n": jnp.array(2)}
INITIAL = {"a": jnp.array([1.0, 2.0]), "n": jnp.array(0)}


def update(state, x):
    return {"a": jnp.tanh(state["a"] * x["u"] + x["v"]), "n": state["n"] + 1}


def inputs(time):
    rng = np.random.default_rng(0)
    return {"u": jnp.asarray(rng.normal(size=(time, 2))), "v": jnp.asarray(rng.normal(size=time))}


@pytest.mark.quick_rows(2)
@pytest.mark.parametrize("begin", [None, [0, 0, 0, 0], [1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 1, 1]])
def test_equals_a_python_loop(begin):
    xs = jax.tree.map(lambda x: x if x.ndim == 2 else x[:, None], inputs(4))
    flags = None if begin is None else jnp.array(begin, bool)
    end, states = jax.jit(
        lambda state, xs: scan.sequential(update, state, xs, flags, initial=INITIAL)
    )(STATE, xs)
    state = STATE
    for t in range(4):
        if begin is not None and begin[t]:
            state = INITIAL
        state = update(state, jax.tree.map(lambda x, t=t: x[t], xs))
        np.testing.assert_allclose(states["a"][t], state["a"], atol=1e-14)
        assert states["n"][t] == state["n"]
    np.testing.assert_array_equal(end["a"], states["a"][-1])
    assert end["n"] == states["n"][-1]


def test_a_start_that_devices_share_becomes_one_of_each():
    """Under `jax.shard_map`, whose check of what varies between devices is on."""
    split = jax.sharding.PartitionSpec("device")
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:2]), ("device",))

    def of_one(xs):
        return scan.sequential(lambda h, x: 0.5 * h + x, jnp.zeros(()), xs[0])[1][None]

    xs = np.array([[1.0, 2.0, 4.0], [0.0, 8.0, 0.0]])
    states = jax.jit(jax.shard_map(of_one, mesh=mesh, in_specs=split, out_specs=split))(xs)
    np.testing.assert_array_equal(states, [[1, 2.5, 5.25], [0, 8, 4]])


def test_begin_needs_an_initial_state():
    with pytest.raises(ValueError, match="`initial` \\(=None\\) must be given with `begin`"):
        scan.sequential(lambda h, x: h + x, jnp.zeros(2), jnp.ones((3, 2)), jnp.zeros(3, bool))


@pytest.mark.quick_rows(2)
@pytest.mark.parametrize("begin", [False, True, jnp.array(False), jnp.array(True)])
def test_reset_selects(begin):
    got = scan.reset(begin, INITIAL, STATE)
    expected = INITIAL if bool(begin) else STATE
    jax.tree.map(np.testing.assert_array_equal, got, expected)
    assert jax.tree.map(lambda x: x.dtype, got) == jax.tree.map(lambda x: x.dtype, STATE)


def test_reset_selects_keys_and_plain_numbers():
    new, old = jax.random.key(0), jax.random.key(1)
    for begin in (False, True, jnp.array(False), jnp.array(True)):
        key, number = scan.reset(begin, (new, 0.0), (old, 1.5))
        assert (key == (new if begin else old)).all() and number == (0.0 if begin else 1.5)


def test_reset_takes_one_flag(monkeypatch):
    """Of a batch without `jax.vmap` it would reset some units, where there are as many."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=r"`begin` \(shape \(2,\)\) must be one flag"):
        scan.reset(jnp.array([True, False]), INITIAL, STATE)


def test_reset_keeps_the_dtype_of_the_state_and_forgets_a_nan():
    state = jnp.full(3, jnp.nan, jnp.float32)
    for begin in (True, jnp.array(True)):
        got = scan.reset(begin, jnp.zeros(3), state)
        assert got.dtype == jnp.float32
        np.testing.assert_array_equal(got, 0)
    gradient = jax.grad(lambda s: jnp.sum(scan.reset(jnp.array(True), jnp.zeros(3), s) ** 2))(state)
    np.testing.assert_array_equal(gradient, 0)
