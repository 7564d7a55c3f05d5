"""Sensitivities in a table: the gradients of many segments by rows, as by a sum of each alone."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rtrl
import zoo

ROWS, PICKED, TIME = 10, 6, 3
# Wide enough for the loop over rows, but for the last; of every structure one.
CELLS = {
    "rtu": {"hidden": 8, "inputs": 130},
    "rtu, nonlinear": {"hidden": 8, "inputs": 70, "nonlinear": True},
    "gru": {"hidden": 6, "inputs": 12},
    "ffm": {"traces": 4, "contexts": 2, "inputs": 300},
    "lru": {"hidden": 3, "inputs": 2},
}
INDEX = np.array([7, 2, 2, 9, 0, 4])
BEGIN = np.zeros((PICKED, TIME), bool)
BEGIN[1, 0] = BEGIN[3, 2] = True


@functools.cache
def problem(name):
    """A cell, states and sensitivities of several pasts, and inputs of the segments after them."""
    options = dict(CELLS[name])
    if name == "ffm":
        options["hidden"] = 4
    cell = zoo.get(name.partition(",")[0], key=jax.random.key(0), **options)

    @jax.jit
    def pasts(cell, xs):
        begin = cell.init_state(), cell.rtrl_init()
        return jax.vmap(lambda xs: cell.rtrl_scan(begin, xs)[0])(xs)

    draw = np.random.default_rng(0)
    states, table = pasts(cell, jnp.asarray(draw.normal(size=(ROWS, 4, cell.inputs))))
    xs = jnp.asarray(draw.normal(size=(PICKED, TIME, cell.inputs)))
    return cell, states, table, xs


def loss(cell, states, sensitivities, xs):
    """Of all picked segments, whose sensitivities are rows, or stand by themselves."""
    axes = (0, rtrl.row_axes(sensitivities)), 0, 0
    run = lambda carry, xs, begin: cell.rtrl_scan(carry, xs, begin)[1]  # noqa: E731
    return jnp.sum(jax.vmap(run, axes)((states, sensitivities), xs, jnp.asarray(BEGIN)) ** 2)


def gradient_by_rows(cell, states, table, index, xs):
    picked = jax.tree.map(lambda x: x[index], states)
    return jax.grad(loss)(cell, picked, rtrl.rows(table, index), xs)


def gradient_of_each(cell, states, table, index, xs):
    picked = jax.tree.map(lambda x: x[index], (states, table))
    return jax.grad(loss)(cell, *picked, xs)


def assert_close(got, want, **tolerance):
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True)
    for g, w in pairs:
        np.testing.assert_allclose(g, w, atol=1e-12 * np.abs(w).max(), **tolerance)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("name", CELLS)
def test_gradients_by_rows_are_the_sum_of_each(name):
    cell, states, table, xs = problem(name)
    got = jax.jit(gradient_by_rows)(cell, states, table, INDEX, xs)
    want = jax.jit(gradient_of_each)(cell, states, table, INDEX, xs)
    assert_close(got, want, rtol=1e-10)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("shared_table", [False, True])
def test_under_vmap_every_batch_has_rows_of_its_own(shared_table):
    """As seeds side by side have: networks, tables and rows of their own."""
    cell, states, table, xs = problem("rtu")
    index = jnp.stack([jnp.asarray(INDEX), jnp.asarray(INDEX[::-1]), jnp.arange(PICKED)])
    axes = 0, None, None if shared_table else 0, 0, None
    cells, tables = jax.tree.map(lambda x: jnp.stack([x, 2 * x, 3 * x]), (cell, table))
    given = cells, states, table if shared_table else tables, index, xs
    got = jax.jit(jax.vmap(gradient_by_rows, axes))(*given)
    for i in range(3):
        one, own = jax.tree.map(lambda x, i=i: x[i], (cells, tables))
        own = table if shared_table else own
        want = jax.jit(gradient_of_each)(one, states, own, index[i], xs)
        assert_close(jax.tree.map(lambda x, i=i: x[i], got), want, rtol=1e-10)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)], ids=str)
def test_each_of_many_may_have_its_own_network_or_table(axes):
    """Then there is no one gradient to sum over rows."""
    cell, states, table, xs = problem("lru")
    rows = jnp.array([7, 2, 9])
    cells, tables = (
        own if axis is None else jax.tree.map(lambda x: jnp.stack([x, 2 * x, 3 * x]), own)
        for own, axis in zip((cell, table), axes, strict=True)
    )

    def gradient(of_row):
        def loss(cell, table, i):
            carry = jax.tree.map(lambda x: x[i], states), of_row(table, i)
            return jnp.sum(cell.rtrl_scan(carry, xs[0])[1] ** 2)

        all_of = jax.vmap(loss, (*axes, 0))
        return jax.jit(jax.grad(lambda cells: jnp.sum(all_of(cells, tables, rows))))(cells)

    assert_close(
        gradient(rtrl.rows),
        gradient(lambda table, i: jax.tree.map(lambda x: x[i], table)),
        rtol=1e-10,
    )


def test_a_row_by_itself_is_told_to_have_no_gradient():
    cell, states, table, xs = problem("lru")
    carry = jax.tree.map(lambda x: x[0], states), rtrl.rows(table, jnp.array(0))
    with pytest.raises(ValueError, match=r"A row of `rtrl.rows` has no gradient by itself: put a"):
        jax.grad(lambda cell: jnp.sum(cell.rtrl_scan(carry, xs[0])[1]))(cell)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_a_sum_of_many_rows_grows_in_half_precision_too(dtype):
    """Each is a one, of which bfloat16 counts 256 and float16 2,048."""
    table, state = (jnp.ones((1, 64, 64), dtype),), jnp.ones((4096, 64), dtype)
    given = rtrl.rows(table, jnp.zeros(4096, int))

    def total(parameters):
        one = lambda row, state: rtrl.supply(rtrl.Diagonal(), parameters, state, row)  # noqa: E731
        return jnp.sum(jax.vmap(one, (rtrl.row_axes(given), 0))(given, state).astype(jnp.float32))

    gradient = jax.jit(jax.grad(total))(jnp.ones((64, 64), dtype))
    assert gradient.dtype == dtype
    np.testing.assert_array_equal(gradient, 4096)


def test_where_an_episode_begins_a_row_is_not_read():
    """Row 2 is NaN, and is picked once at a beginning and once not."""
    cell, states, table, xs = problem("rtu")
    table = jax.tree.map(lambda x: x.at[2].set(jnp.nan), table)
    index = np.array([7, 2, 3, 9, 0, 4])
    got = jax.jit(gradient_by_rows)(cell, states, table, index, xs)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(got))
    index[0] = 2
    got = jax.jit(gradient_by_rows)(cell, states, table, index, xs)
    assert any(np.isnan(g).any() for g in jax.tree.leaves(got))


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("by_rows", [True, False])
def test_rounded_sensitivities_keep_three_digits(by_rows):
    cell, states, table, xs = problem("rtu")
    gradient = gradient_by_rows if by_rows else gradient_of_each
    small = rtrl.rounded(table)
    bytes_of = lambda tree: sum(x.nbytes for x in jax.tree.leaves(tree))  # noqa: E731
    assert 4 * bytes_of(small) == bytes_of(table)  # of float64
    got = jax.jit(gradient)(cell, states, small, INDEX, xs)
    want = jax.jit(gradient_of_each)(cell, states, table, INDEX, xs)
    got, want = (np.concatenate([x.ravel() for x in jax.tree.leaves(t)]) for t in (got, want))
    assert 0 < np.linalg.norm(got - want) < 2**-8 * np.linalg.norm(want)


def test_rounding_is_that_of_bfloat16():
    draw = np.random.default_rng(0)
    x = (draw.normal(size=1000) * 10.0 ** draw.integers(-30, 30, size=1000)).astype(np.float32)
    x[:4] = 0, np.inf, -np.inf, np.nan
    # Not a number either: of a GPU, and with every bit set.
    x[4:6] = np.array([0x7FFFFFFF, 0xFFFFFFFF], np.uint32).view(np.float32)
    small = rtrl.rounded(jnp.asarray(x))
    want = jnp.asarray(x).astype(jnp.bfloat16).astype(jnp.float32)
    np.testing.assert_array_equal(small.restored(), want)
    assert small.restored().dtype == jnp.float32
    counts = jnp.arange(3)
    np.testing.assert_array_equal(rtrl.rounded(counts), counts)
    assert rtrl.rounded(want.astype(jnp.bfloat16)).dtype == jnp.bfloat16
