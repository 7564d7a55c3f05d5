"""Ring buffers: the last rows of a sequence, wherever they are kept."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from zoo.parts import RingBuffer

LENGTH, TIME = 4, 11


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_are_found_by_their_lag_and_in_their_order(axis):
    """At every step of two that are at different places, in a batch."""
    xs = jnp.arange(2.0 * TIME * 3).reshape(TIME, 2, 3)
    empty = RingBuffer.of({"x": jnp.zeros((LENGTH, 3) if axis == 0 else (3, LENGTH))}, axis)
    later = empty.append({"x": jnp.zeros(3)})
    buffers = jax.tree.map(lambda *both: jnp.stack(both), empty, later)
    lags = jnp.asarray([0, 2, 1])

    def by_row(rows):
        return jnp.moveaxis(rows["x"], axis, 0)

    @jax.vmap
    def step(buffer, x):
        buffer = buffer.append({"x": x})
        by_lag = jnp.zeros((LENGTH, 3)).at[buffer.lags()].set(by_row(buffer.rows))
        return buffer, (by_row(buffer.in_order()), by_row(buffer.at(lags)), by_lag)

    _, (in_order, at, by_lag) = jax.lax.scan(step, buffers, xs)
    for t in range(LENGTH - 1, TIME):
        expected = jnp.moveaxis(xs[t - LENGTH + 1 : t + 1], 0, 1)
        np.testing.assert_array_equal(in_order[t], expected)
        np.testing.assert_array_equal(at[t], expected[:, LENGTH - 1 - lags])
        np.testing.assert_array_equal(by_lag[t], expected[:, ::-1])


def test_a_buffer_of_no_rows_stays_empty():
    empty = RingBuffer.of(jnp.zeros((0, 3)))
    assert empty.append(jnp.ones(3)).in_order().shape == (0, 3)
