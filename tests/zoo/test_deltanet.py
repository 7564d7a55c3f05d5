"""What the delta rule is for: writing to a key again replaces what was there."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import zoo
from zoo.parts import overwritten_states

KEYS, HIDDEN = 3, 2
LARGE = 60.0  # silu(60) = 60, silu(0) = 0, and σ(60) = 1 in float64


def constant(layer, value):
    """A layer that gives one number, whatever its input."""
    new = jnp.zeros_like(layer.weight), jnp.full_like(layer.bias, value)
    return eqx.tree_at(lambda linear: (linear.weight, linear.bias), layer, new)


def writer(*, gated, learning_rate):
    """A cell whose input is a key, one of the axes, and the value to write; it forgets nothing."""
    cell = zoo.DeltaNet(KEYS + HIDDEN, HIDDEN, keys=KEYS, gated=gated, key=jax.random.key(0))
    to_key, to_value = jnp.split(jnp.eye(KEYS + HIDDEN), [KEYS])
    weights = lambda c: (c.keys.weight, c.queries.weight, c.values.weight)  # noqa: E731
    cell = eqx.tree_at(weights, cell, (LARGE * to_key, LARGE * to_key, to_value))
    new = constant(cell.learning_rate, learning_rate)
    cell = eqx.tree_at(lambda c: c.learning_rate, cell, new)
    if not gated:
        return cell
    return eqx.tree_at(lambda c: c.decay_rate, cell, constant(cell.decay_rate, -LARGE))


def written(cell, steps):
    """What the memory answers to each of its keys after pairs of key and value were written."""
    xs = jnp.stack([jnp.concatenate([jnp.eye(KEYS)[key], value]) for key, value in steps])
    memory = cell.scan(cell.init_state(), xs)[0]
    axes = jnp.pad(jnp.eye(KEYS), ((0, 0), (0, HIDDEN)))
    return jax.vmap(cell.readout, (None, 0))(memory, axes)


@pytest.mark.slow
@pytest.mark.parametrize("gated", [False, True])
def test_a_key_written_again_is_overwritten(gated):
    values = jax.random.normal(jax.random.key(1), (4, HIDDEN))
    steps = list(zip([0, 1, 0, 0], values, strict=True))
    stored = jax.nn.silu(values)

    answers = written(writer(gated=gated, learning_rate=LARGE), steps)
    expected = jnp.stack([stored[3], stored[1], jnp.zeros(HIDDEN)])
    np.testing.assert_allclose(answers, expected, rtol=1e-12, atol=1e-12)

    # β = 1/2: what is there moves half of the way.
    answers = written(writer(gated=gated, learning_rate=0.0), steps)
    first = stored[0] / 8 + stored[2] / 4 + stored[3] / 2
    expected = jnp.stack([first, stored[1] / 2, jnp.zeros(HIDDEN)])
    np.testing.assert_allclose(answers, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", ["sequential", "associative"])
def test_states_go_through_products_of_full_precision(float32, method):
    """A GPU's default would round them to ten bits at every step, or at every level of the tree."""
    s, k, v = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in [(2, 3), (4, 3), (4, 2)])
    rate = jax.ShapeDtypeStruct((4,), jnp.float32)
    states = lambda *x: overwritten_states(x[0], x[1:], None, method)  # noqa: E731
    program = jax.jit(states).trace(s, rate, rate, k, v).lower(lowering_platforms=("cuda",))
    products = [line for line in program.as_text().splitlines() if "dot_general" in line]
    assert products and all("precision = [HIGHEST, HIGHEST]" in line for line in products)
