"""Normalizations: what they make the same, and what half precision would lose."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from zoo.parts import layer_norm, rms_norm, unit

ROWS = jnp.array([[1.0, 2.0, 6.0], [-3.0, 0.0, 1.0]])


def test_rows_have_mean_0_and_variance_1():
    y = layer_norm(ROWS)
    np.testing.assert_allclose([y.mean(-1), y.var(-1)], [[0, 0], [1, 1]], atol=1e-5)


def test_rows_have_a_mean_square_or_a_length_of_1():
    np.testing.assert_allclose(jnp.mean(rms_norm(ROWS, 0.0) ** 2, -1), 1, rtol=1e-12)
    np.testing.assert_allclose(jnp.linalg.norm(unit(ROWS), axis=-1), 1, rtol=1e-12)


@pytest.mark.quick_rows(3)
@pytest.mark.parametrize("norm", [layer_norm, rms_norm, unit])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_normalized_in_float32(norm, dtype):
    x = jnp.array([300.0, -300.0, 1.0], dtype)  # whose squares are too large for float16
    compiled = jax.jit(norm)
    found = compiled(x)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, compiled(x.astype(jnp.float32)).astype(dtype))
    slopes = jax.jit(jax.jacobian(norm))(jnp.zeros(3, dtype))
    assert slopes.dtype == dtype and not jnp.isnan(slopes).any()


@pytest.mark.parametrize("norm", [layer_norm, rms_norm, unit])
def test_whole_numbers_are_normalized_in_float32(norm, unhooked):
    x = np.array([[1, 0, 1]])
    expected = norm(jnp.asarray(x, jnp.float32))
    for dtype in (jnp.int32, jnp.int8, bool):
        found = norm(jnp.asarray(x, dtype))
        assert found.dtype == jnp.float32
        np.testing.assert_array_equal(found, expected)


def test_large_vectors_are_scaled_and_have_gradients():
    """In float32, whose squares end at 3e38, as in float64."""

    def of(x):
        value, pullback = jax.vjp(rms_norm, x)
        return value, pullback(jnp.cos(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape))[0]

    for scale in (1e-9, 1e-3, 1.0, 1e9, 1e15, 1e19, 1e30):
        for found, expected in zip(
            jax.jit(of)(jnp.float32(scale * ROWS)), jax.jit(of)(scale * ROWS), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())
