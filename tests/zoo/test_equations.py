"""Every cell against a loop written from its paper's equations, in NumPy, without our classes."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import zoo
from tests.zoo import naive_matrices, naive_selective, naive_vectors
from tests.zoo.naive_math import XS

CASES = naive_vectors.CASES + naive_matrices.CASES + naive_selective.CASES


@pytest.mark.quick_rows(5)
@pytest.mark.parametrize(
    ("name", "options", "naive"), CASES, ids=lambda p: "" if callable(p) else str(p)
)
def test_equations(name, options, naive):
    @eqx.filter_jit
    def run(xs):
        cell = zoo.get(name, hidden=4, inputs=3, **options)
        return cell, cell.scan(cell.init_state(), xs)[1]

    cell, ys = run(jnp.asarray(XS))
    np.testing.assert_allclose(ys, np.stack(list(naive(cell))), rtol=1e-9, atol=1e-11)
    assert ys.shape == (len(XS), cell.outputs)
