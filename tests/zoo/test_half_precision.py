"""What half precision takes away: counts above 256, complex numbers, exponentials of matrices."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import zoo
from zoo.proofs import dtypes

LONG = 600


def in_bfloat16(name):
    return dtypes.cast(zoo.get(name, hidden=4, inputs=3), jnp.bfloat16)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("name", ["positional_mlp", "shm", "tcn"])
@pytest.mark.parametrize("form", ["step", "scan"])
def test_steps_are_counted_in_integers(name, form, float32):
    """A bfloat16 stops at 256, where 1 is less than half of the distance to the next."""
    cell = in_bfloat16(name)
    xs = jnp.ones((LONG, 3), jnp.bfloat16)

    @eqx.filter_jit
    def run(cell, state):
        if form == "scan":
            return cell.scan(state, xs)
        return jax.lax.scan(lambda h, x: cell.step(h, x), state, xs)

    state, _ = run(cell, cell.init_state())
    count = jax.tree.leaves(state)[-1]
    assert count.dtype == jnp.int32
    assert count == (cell.reach if name == "tcn" else LONG)


def test_the_clock_goes_on_above_256(float32):
    """Outputs of later steps differ, in bfloat16 as in float32."""
    cell = in_bfloat16("positional_mlp")
    xs = jnp.ones((LONG, 3), jnp.bfloat16)
    _, ys = eqx.filter_jit(cell.scan)(cell.init_state(), xs)
    _, expected = eqx.filter_jit(zoo.get("positional_mlp", hidden=4, inputs=3).scan)(
        cell.init_state(), xs.astype(jnp.float32)
    )
    np.testing.assert_allclose(ys.astype(jnp.float32), expected, atol=0.05)
    assert ys.dtype == jnp.bfloat16 and np.std(np.asarray(ys[300:], np.float32), 0).max() > 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["rtu", "mingru", "gru", "ffm", "dnc", "transformer", "qrnn", "gru by UORO"]
)
def test_gradients_in_bfloat16(name, float32):
    """Values and types are in every cell's proof; complex cells compute in float32."""
    name, _, sensitivity = name.partition(" by ")
    options = {"sensitivity": sensitivity.lower()} if sensitivity else {}
    cell = zoo.get(name, hidden=4, inputs=3, **options)
    gradient = eqx.filter_jit(
        eqx.filter_grad(lambda cell: jnp.sum(_outputs(cell).astype(jnp.float32) ** 2))
    )(dtypes.cast(cell, jnp.bfloat16))
    for leaf in jax.tree.leaves(gradient):
        assert leaf.dtype == jnp.bfloat16 and bool(jnp.all(jnp.isfinite(leaf)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("ttt", "dnc", "mamba2", "ffm", "retnet", "gated_linear_attention", "deltanet"),
        "delta_product",
    ],
)
def test_gradients_in_float16(name, float32):
    """Of what is normalized."""
    cell = dtypes.cast(zoo.get(name, hidden=4, inputs=3), jnp.float16)
    xs = jax.random.normal(jax.random.key(0), (50, 3), jnp.float16)

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(cell):
        return jnp.sum(cell.scan(cell.init_state(), xs)[1].astype(jnp.float32) ** 2)

    for leaf in jax.tree.leaves(gradient(cell)):
        assert leaf.dtype == jnp.float16 and bool(jnp.all(jnp.isfinite(leaf)))


def _outputs(cell):
    return cell.rtrl_scan((cell.init_state(), cell.rtrl_init()), jnp.ones((3, 3), jnp.bfloat16))[1]


@eqx.filter_jit
def mixed(kind, gru):
    """A GRU in bfloat16 beside what is in float32."""
    if kind == "fronted":
        return zoo.Fronted(eqx.nn.Linear(3, 3, key=jax.random.key(1)), gru, inputs=3)
    blocks = [gru, zoo.get("lru", hidden=2, inputs=3)]
    return zoo.Stack([zoo.Block(c, key=jax.random.key(2)) for c in blocks], credit="exact")


@eqx.filter_jit
def all_forms(memory, carry, xs):
    forward = memory.scan(carry[0], xs), memory.step(carry[0], xs[0])
    return *forward, memory.rtrl_scan(carry, xs), memory.rtrl_step(carry, xs[0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fronted", "exact stack"])
def test_a_cell_is_given_its_own_precision(kind, float32):
    memory = mixed(kind, in_bfloat16("gru"))
    xs = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    carry = memory.init_state(), memory.rtrl_init()
    (_, expected), (stepped, _), ((state, _), found), ((by_rtrl, _), _) = all_forms(
        memory, carry, xs
    )
    np.testing.assert_array_equal(found, expected)
    types = lambda tree: [x.dtype for x in jax.tree.leaves(tree)]  # noqa: E731
    for after in (state, by_rtrl, stepped):
        assert types(after) == types(carry[0])
